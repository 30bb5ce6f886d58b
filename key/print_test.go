package key_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/onceward/onceward/key"
)

// hidden is what must not be seen, and also not in hex.
const hidden = "topsecret"

func TestNothingPrintsTheText(t *testing.T) {
	t.Parallel()
	k := must(t, hidden)
	type outer struct {
		Key any
		N   int
	}
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		l := slog.New(h)
		l.Info("x", "key", k, "pointer", &k, "in", outer{k, 1})
		l.With("key", k).WithGroup("g").Error("x", slog.Any("key", k))
	}
	inJSON, err := json.Marshal([]any{k, &k, outer{k, 1}, map[key.Key]int{k: 1}})
	if err != nil {
		t.Fatal(err)
	}
	inXML, err := xml.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{
		"slog":    logged.String(),
		"json":    string(inJSON),
		"xml":     string(inXML),
		"print":   fmt.Sprint(k, &k),
		"println": fmt.Sprintln(outer{k, 1}),
		"extra":   fmt.Sprintf("%s", []any{"a", k}...),
		"error":   fmt.Errorf("refused %v: %s", k, &k).Error(),
		"String":  k.String(), "GoString": k.GoString(), "Digest": k.Digest(),
	}
	for verb := 'A'; verb <= 'z'; verb++ {
		if verb == 'p' || verb == 'T' || verb == 'w' { // fmt shows no method these; go vet refuses them
			continue
		}
		for _, flags := range []string{"", "+", "#", "-", " ", "0", "20", ".30", "-#+ 020.30"} {
			format := "%" + flags + string(verb)
			shown[format] = fmt.Sprintf(format, k) + fmt.Sprintf(format, &k) + fmt.Sprintf(format, outer{k, 1})
		}
	}
	for how, text := range shown {
		if strings.Contains(text, hidden) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", hidden)) {
			t.Errorf("%s shows it: %s", how, text)
		}
	}
}

func TestWhatIsPrinted(t *testing.T) {
	t.Parallel()
	k := must(t, "test") // its SHA-256 begins with 9f86d081884c
	for format, want := range map[string]string{
		"%v":   "key:9f86d081884c",
		"%+v":  "key:9f86d081884c",
		"%#v":  "key.Key(key:9f86d081884c)",
		"%s":   "key:9f86d081884c",
		"%q":   `"key:9f86d081884c"`,
		"%d":   "key:9f86d081884c",
		"%20s": "    key:9f86d081884c",
	} {
		if got := fmt.Sprintf(format, k); got != want {
			t.Errorf("%s: got %s, want %s", format, got, want)
		}
	}
	if got, err := json.Marshal(map[string]any{"key": k}); err != nil || string(got) != `{"key":"key:9f86d081884c"}` {
		t.Errorf("json: %s, %v", got, err)
	}
	if got := k.LogValue().String(); got != "key:9f86d081884c" {
		t.Errorf("slog: %s", got)
	}
	if err := json.Unmarshal([]byte(`"key:9f86d081884c"`), &k); err == nil { //nolint:staticcheck // that it fails is the point
		t.Error("a digest was read as a key")
	}
}
