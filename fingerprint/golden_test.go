package fingerprint_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/onceward/onceward/fingerprint"
)

// golden is one line of testdata/v1.json: parts, and the sum that they have in version 1 for ever. Lines may be added,
// never changed; the first ones were made by another implementation of the rules.
type golden struct {
	Name  string
	Parts []struct {
		Kind, Tag, Body string
		Base64          []byte
		Segments        []segment
		LeaveOut        []string `json:"leave_out"`
	}
	Sum string
}

// segment is a text and how often it stands in a row.
type segment struct {
	text  string
	times int
}

func (s *segment) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&s.text, &s.times})
}

func TestGoldenV1(t *testing.T) {
	t.Parallel()
	if fingerprint.Version != 1 {
		t.Fatal("a new version needs its own corpus, and must still make the sums of this one for stored records")
	}
	b, err := os.ReadFile("testdata/v1.json")
	var lines []golden
	if err == nil {
		err = json.Unmarshal(b, &lines)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 167 {
		t.Fatalf("only %d lines", len(lines))
	}
	for _, line := range lines {
		t.Run(line.Name, func(t *testing.T) {
			t.Parallel()
			h := fingerprint.New()
			for range 2 { // a Hasher begins anew
				for _, p := range line.Parts {
					body := p.Base64
					if body == nil {
						body = []byte(p.Body)
					}
					for _, s := range p.Segments {
						body = append(body, strings.Repeat(s.text, s.times)...)
					}
					switch p.Kind {
					case "text":
						h.Text(p.Tag, string(body))
					case "bytes":
						h.Bytes(p.Tag, body)
					case "json":
						h.JSON(p.Tag, body, p.LeaveOut)
					case "form":
						h.Form(p.Tag, body, p.LeaveOut)
					case "query":
						h.Query(p.Tag, string(body), p.LeaveOut)
					default:
						t.Fatalf("kind %q", p.Kind)
					}
				}
				if got := h.Sum().String(); got != line.Sum {
					t.Fatalf("got  %s\nwant %s", got, line.Sum)
				}
			}
		})
	}
}
