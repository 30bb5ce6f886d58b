package oncehttp

import (
	"maps"
	"net/http"
	"slices"
	"testing"
)

func decoded(meta string) (int, http.Header, error) {
	status, lines, err := decodeMeta(meta, nil)
	h := http.Header{}
	for _, l := range lines {
		if l.set {
			h[l.name] = append(h[l.name], l.value)
		} else if h[l.name] == nil {
			h[l.name] = nil
		}
	}
	return status, h, err
}

func TestMetaKeepsWhatIsOfTheContent(t *testing.T) {
	t.Parallel()
	h := http.Header{
		"Content-Type": nil, "Link": {"a", "", "b:c"}, "ETag": {"1"}, "Vary": {"x"}, "Set-Cookie": {"s"}, "Date": {"d"},
		"Location": {"/a\r\nSet-Cookie: b"},
	}
	meta := encodeMeta(nil, 201, appendFields(nil, h), []field{{"Vary", []string{"x"}}, {"Link", []string{"a"}}})
	want := "201\nContent-Type\nEtag:1\nLink:a\nLink:\nLink:b:c\nLocation:/a  Set-Cookie: b"
	if string(meta) != want {
		t.Errorf("%q, want %q", meta, want)
	}
	status, back, err := decoded(string(meta))
	if err != nil || status != 201 || len(back) != 4 || !slices.Equal(back["Link"], h["Link"]) {
		t.Errorf("%d %v %v", status, back, err)
	}
}

// FuzzDecodeMeta: no bytes make it panic, and what it takes comes out the same after another round.
func FuzzDecodeMeta(f *testing.F) {
	for _, s := range []string{"", "200", "201\nContent-Type:text/plain\nLink:a\nLink:b", "204\nContent-Type", "x", "200\n", "200\nSet-Cookie:a", "200\nLink:a\nVary:x\nLink:b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, meta string) {
		status, h, err := decoded(meta)
		if err != nil {
			return
		}
		for name, values := range h {
			if !kept(name) {
				t.Fatalf("%q came out", name)
			}
			for i, v := range values {
				values[i] = lineBreaks.Replace(v)
			}
		}
		status2, h2, err := decoded(string(encodeMeta(nil, status, appendFields(nil, h), nil)))
		if err != nil || status2 != status || !maps.EqualFunc(h, h2, slices.Equal[[]string]) {
			t.Fatalf("%q: %d %v, then %d %v (%v)", meta, status, h, status2, h2, err)
		}
	})
}
