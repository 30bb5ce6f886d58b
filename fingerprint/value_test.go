package fingerprint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// A value of these tests is nil, bool, string, json.Number, []any or object.
type object []field

type field struct {
	name  string
	value any
}

// readValue reads JSON of one meaning with encoding/json.
func readValue(body []byte) (v any, ok bool) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return readNext(d, body, 0)
}

func readNext(d *json.Decoder, body []byte, depth int) (v any, ok bool) {
	token, err := d.Token()
	if err != nil {
		panic(err) // json.Valid said it is
	}
	delim, container := token.(json.Delim)
	if !container {
		return token, true
	}
	if depth == maxDepth {
		return nil, false
	}
	if delim == '[' {
		list := []any{}
		for d.More() {
			if v, ok = readNext(d, body, depth+1); !ok {
				return nil, false
			}
			list = append(list, v)
		}
		_, _ = d.Token()
		return list, true
	}
	o, seen := object{}, map[string]bool{}
	for d.More() {
		name, _ := d.Token()
		// A surrogate in a name is U+FFFD to encoding/json; where it stands in the text keeps such names apart.
		text := name.(string)
		identity := text
		if strings.ContainsRune(text, utf8.RuneError) {
			identity = exactName(body[:d.InputOffset()])
		}
		if seen[identity] {
			return nil, false
		}
		seen[identity] = true
		if v, ok = readNext(d, body, depth+1); !ok {
			return nil, false
		}
		o = append(o, field{text, v})
	}
	_, _ = d.Token()
	return o, true
}

// exactName returns the form of the string that text ends with.
func exactName(text []byte) string {
	for start := len(text) - 2; start >= 0; start-- {
		if text[start] != '"' {
			continue
		}
		if got, ok := form(string(text[start:])); ok && !escapedAt(text, start) {
			return got
		}
	}
	panic("no string")
}

// escapedAt reports whether an odd number of backslashes stands before i.
func escapedAt(text []byte, i int) bool {
	n := 0
	for i-n-1 >= 0 && text[i-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

func randomValue(r *rand.Rand, depth int) any {
	kind := r.IntN(8)
	if depth == 0 {
		kind = r.IntN(5)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return json.Number(fmt.Sprint(r.IntN(200) - 100))
	case 3:
		return json.Number(fmt.Sprintf("%d.%de%d", r.Int64()-r.Int64(), r.IntN(1000), r.IntN(600)-300))
	case 4:
		return randomText(r)
	case 5:
		list := []any{}
		for range r.IntN(5) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	}
	o, seen := object{}, map[string]bool{}
	for range r.IntN(20) {
		if name := randomText(r); !seen[name] {
			seen[name] = true
			o = append(o, field{name, randomValue(r, depth-1)})
		}
	}
	return o
}

func randomText(r *rand.Rand) string {
	alphabet := []rune("aaab\"\\/\n\x00~\u00e9\u6c49\U0001f600\ufffd\uffff")
	var b strings.Builder
	for range r.IntN(4) {
		b.WriteRune(alphabet[r.IntN(len(alphabet))])
	}
	if r.IntN(50) == 0 {
		b.WriteString(strings.Repeat("x", 600))
	}
	return b.String()
}

// changed returns v with one leaf made another value.
func changed(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			w := append([]any{}, v...)
			i := r.IntN(len(w))
			w[i] = changed(r, w[i])
			return w
		}
	case object:
		if len(v) > 0 {
			w := append(object{}, v...)
			i := r.IntN(len(w))
			w[i].value = changed(r, w[i].value)
			return w
		}
	case string:
		return v + "+"
	case json.Number:
		return json.Number("1" + strings.TrimPrefix(string(v), "-")) // one more digit in front
	case bool:
		return !v
	}
	return "something else"
}

// write writes v as JSON in a random order and style.
func write(r *rand.Rand, v any) string {
	var b strings.Builder
	writeValue(&b, r, v)
	return b.String()
}

func writeValue(b *strings.Builder, r *rand.Rand, v any) {
	blank(b, r)
	defer blank(b, r)
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		fmt.Fprint(b, v)
	case json.Number:
		b.WriteString(writeNumber(r, string(v)))
	case string:
		writeText(b, r, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, r, e)
		}
		blank(b, r)
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, at := range r.Perm(len(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			blank(b, r)
			writeText(b, r, v[at].name)
			blank(b, r)
			b.WriteByte(':')
			writeValue(b, r, v[at].value)
		}
		blank(b, r)
		b.WriteByte('}')
	}
}

func blank(b *strings.Builder, r *rand.Rand) {
	for r.IntN(4) == 0 {
		b.WriteByte(" \t\r\n"[r.IntN(4)])
	}
}

func writeText(b *strings.Builder, r *rand.Rand, text string) {
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c > 0xFFFF && r.IntN(2) == 0:
			fmt.Fprintf(b, `\u%04x\u%04X`, 0xD800+(c-0x10000)>>10, 0xDC00+(c-0x10000)&0x3FF)
		case c == '\n' && r.IntN(2) == 0:
			b.WriteString(`\n`)
		case (c == '"' || c == '\\' || c == '/') && r.IntN(2) == 0:
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c == '"' || c == '\\' || c <= 0xFFFF && r.IntN(4) == 0:
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}

// writeNumber writes a number in another way: zeros behind the point, the point moved, signs and leading zeros of the
// exponent.
func writeNumber(r *rand.Rand, text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	if r.IntN(2) == 0 {
		if !strings.Contains(mantissa, ".") {
			mantissa += "."
		}
		mantissa += strings.Repeat("0", 1+r.IntN(3))
	}
	switch strings.Trim(mantissa, "0.") {
	case "":
		sign = []string{"", "-"}[r.IntN(2)]
	}
	if exponent == "" && r.IntN(2) == 0 {
		return sign + mantissa
	}
	up := ""
	if exponent = strings.TrimPrefix(exponent, "+"); strings.HasPrefix(exponent, "-") {
		up, exponent = "-", exponent[1:]
	} else if r.IntN(2) == 0 {
		up = "+"
	}
	if exponent == "" {
		exponent = "0"
	}
	return sign + mantissa + string("eE"[r.IntN(2)]) + up + strings.Repeat("0", r.IntN(3)) + exponent
}
