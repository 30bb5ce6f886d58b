package fingerprint

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// benchmarkBody has 256 bytes.
const benchmarkBody = `{"order":"o-20261130-000001","amount":129900,"currency":"CNY","channel":"wechat","buyer":{"id":"u-778123","ip":"203.0.113.7"},"items":[{"sku":"A-1","n":2,"price":49950},{"sku":"B-7","n":1,"price":30000}],"note":"leave at the door","coupon":null,"x":123456}`

var sink Sum

func BenchmarkSHA256(b *testing.B) { // the floor
	body := []byte(benchmarkBody)
	b.ReportAllocs()
	for b.Loop() {
		sum := sha256.Sum256(body)
		sink[0] = sum[0]
	}
}

func BenchmarkBytes(b *testing.B) {
	body := []byte(benchmarkBody)
	b.ReportAllocs()
	for b.Loop() {
		h := New()
		h.Bytes("body", body)
		sink = h.Sum()
	}
}

func BenchmarkJSON(b *testing.B) {
	body := []byte(benchmarkBody)
	b.ReportAllocs()
	for b.Loop() {
		h := New()
		h.JSON("body", body, nil)
		sink = h.Sum()
	}
}

func BenchmarkRequest(b *testing.B) { // what a middleware does
	body := []byte(benchmarkBody)
	for name, body := range map[string][]byte{"JSON": body, "none": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h := New()
				h.Text("method", "POST")
				h.Text("path", "/v1/payments")
				h.Query("query", "", nil)
				h.Text("type", "application/json")
				h.JSON("body", body, nil)
				sink = h.Sum()
			}
		})
	}
}

// BenchmarkHostile reads a mebibyte that was built to be slow.
func BenchmarkHostile(b *testing.B) {
	nested := func(inner string) []byte {
		return []byte(strings.Repeat(`{"b":`, maxDepth-2) + inner + strings.Repeat(`,"a":1}`, maxDepth-2))
	}
	for name, body := range map[string][]byte{
		"objects in the wrong order": nested(`"` + strings.Repeat("x", 1<<20) + `"`),
		"the same around many":       nested("[" + strings.Repeat(`{"b":1,"a":2},`, 1<<16) + "0]"),
		"many members":               []byte("{" + members(1<<16) + "}"),
		"empty objects":              []byte("[" + strings.Repeat("{},", 1<<18) + "0]"),
		"long exponent":              []byte("1.5e" + strings.Repeat("9", 1<<20)),
		"escapes":                    []byte(`"` + strings.Repeat(`\ud800`, 1<<17) + `"`),
	} {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				h := New()
				h.JSON("body", body, nil)
				sink = h.Sum()
			}
		})
	}
}

// members writes n members in the reverse order.
func members(n int) string {
	var b strings.Builder
	for i := n; i > 0; i-- {
		fmt.Fprintf(&b, `"member %08d":%d,`, i, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}
