package storetest

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/onceward/onceward/driver"
)

func dataCases() []Case {
	return []Case{
		{"data/results come back byte for byte", func(t T, h *Harness) {
			b := open(t, h)
			for name, data := range map[string][]byte{
				"empty": {}, "text": []byte("ok"), "NUL and no UTF-8": {0, 0xff, 0xfe, 0}, "cut rune": []byte("ascii\xe8\xb4"),
				"300 bytes": bytes.Repeat([]byte("r"), 300), "1 MiB": bytes.Repeat([]byte{7, 0, 255}, 1<<20/3),
			} {
				c := ask(name)
				o := driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Meta: []byte("m\x00\xff"), Data: data}}
				b.ends(endOf(c, b.wins(c), o), true)
				got := b.finds(ask(name), driver.Done).Record.Result
				if !bytes.Equal(got.Data, data) || got.Data == nil || string(got.Meta) != "m\x00\xff" || got.Tombstone {
					t.Errorf("%s: %d bytes came back as %d (nil %v)", name, len(data), len(got.Data), got.Data == nil)
				}
			}
		}},
		{"data/a tombstone has no bytes", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			b.ends(endOf(c, b.wins(c), driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "http", Meta: []byte("201"), Tombstone: true}}), true)
			if got := b.finds(ask("k"), driver.Done).Record.Result; !got.Tombstone || got.Data != nil || string(got.Meta) != "201" {
				t.Errorf("%+v", got)
			}
		}},
		{"data/keys are bytes", func(t T, h *Harness) {
			b := open(t, h)
			for _, key := range []string{
				"k", "k ", "k\t", "k\u00a0", "kk", "k\x00", "\xff", "\xfe", "e\u0301", "\u00e9", "{k}", "%", "'", strings.Repeat("{", 255),
			} {
				if r := b.wins(ask(key)).Record; r.Key != key {
					t.Errorf("%q came back as %q", key, r.Key)
				}
				if r := b.get(ask(key).ID); r.Key != key {
					t.Errorf("%q is stored as %q", key, r.Key)
				}
			}
		}},
		{"data/keys keep their case", func(t T, h *Harness) {
			b := open(t, h)
			b.wins(ask("key"))
			b.wins(ask("Key"))
			b.wins(ask("KEY"))
		}},
		{"data/scopes are apart", func(t T, h *Harness) {
			b := open(t, h)
			for _, s := range []driver.Scope{
				{}, {Namespace: "a"}, {Tenant: "a"}, {Caller: "a"}, {Namespace: "a", Tenant: "b"}, {Namespace: "ab"},
				{Tenant: "b", Caller: "a"}, {Tenant: "a", Caller: "b"}, {Caller: "ab"},
			} {
				c := ask("k")
				c.Scope = s
				if r := b.wins(identified(c)).Record; r.Scope != s {
					t.Errorf("%+v came back as %+v", s, r.Scope)
				}
			}
			c := ask("k")
			c.Operation, c.Scope = "refund", driver.Scope{}
			b.wins(identified(c))
		}},
		{"data/limits", func(t T, h *Harness) {
			b := open(t, h)
			full := driver.Claim{
				Scope:     driver.Scope{Namespace: strings.Repeat("n", driver.MaxScopePart), Tenant: strings.Repeat("t", driver.MaxScopePart), Caller: strings.Repeat("c", driver.MaxScopePart)},
				Operation: strings.Repeat("o", driver.MaxOperation), Key: strings.Repeat("k", driver.MaxKey),
				Fingerprint: sumOf("body"), Owner: newOwner(), Lease: lease, Timeout: lease, Retention: retention, MaxAttempts: 1,
			}
			full = identified(full)
			got := b.wins(full)
			if got.Record.Key != full.Key || got.Record.Scope != full.Scope || got.Record.Operation != full.Operation {
				t.Errorf("%+v", got.Record)
			}
			long := strings.Repeat("e", driver.MaxError)
			if _, err := b.s.Finish(t.Context(), endOf(full, got, failure(driver.Final, long+"e"))); !errors.Is(err, driver.ErrTooLong) {
				t.Errorf("an error of %d bytes: %v", driver.MaxError+1, err)
			}
			b.ends(endOf(full, got, failure(driver.Final, long)), true)
			if r := b.get(full.ID); r.Error != long {
				t.Errorf("an error of %d bytes came back with %d", len(long), len(r.Error))
			}
			open := ask("open")
			unclear := b.ends(endOf(open, b.wins(open), failure(driver.Unknown, "cut")), true)
			res := driver.Settlement{ID: open.ID, Fence: unclear.Record.Fence, Outcome: success("r"), Resolution: long + "e", Owner: newOwner()}
			if _, err := b.s.Settle(t.Context(), res); !errors.Is(err, driver.ErrTooLong) || b.get(open.ID).Failure != driver.Unknown {
				t.Errorf("a resolution of %d bytes: %v", driver.MaxError+1, err)
			}
			res.Resolution = long
			b.settle(res, true)
			if r := b.get(open.ID); r.Resolution != long {
				t.Errorf("a resolution of %d bytes came back with %d", len(long), len(r.Resolution))
			}
			for name, stretch := range map[string]func(*driver.Claim){
				"key": func(c *driver.Claim) { c.Key += "k" }, "operation": func(c *driver.Claim) { c.Operation += "o" },
				"namespace": func(c *driver.Claim) { c.Scope.Namespace += "n" }, "tenant": func(c *driver.Claim) { c.Scope.Tenant += "t" },
				"caller": func(c *driver.Claim) { c.Scope.Caller += "c" },
			} {
				c := full
				stretch(&c)
				c = identified(c)
				if _, err := b.s.Claim(t.Context(), c); !errors.Is(err, driver.ErrTooLong) {
					t.Errorf("%s: %v", name, err)
				}
				if _, err := b.s.Get(t.Context(), c.ID); !errors.Is(err, driver.ErrNotFound) {
					t.Errorf("%s: a row was written: %v", name, err)
				}
			}
		}},
		{"data/the store has an id", func(t T, h *Harness) {
			b := open(t, h)
			first := b.wins(ask("a")).Store
			got, err := b.second().Claim(t.Context(), ask("b"))
			if err != nil || got.Store != first || first == (driver.StoreID{}) {
				t.Errorf("%v and %v: %v", first, got.Store, err)
			}
			if other := open(t, h).wins(ask("a")).Store; other == first {
				t.Errorf("two stores are both %v", first)
			}
		}},
		{"data/times keep their place", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			c.Lease, c.RepeatableFor = 1234*time.Millisecond+lease, 77*time.Minute
			got := b.wins(c)
			if r := b.get(c.ID); !r.LeaseUntil.Equal(got.Record.LeaseUntil) || !r.DeadlineAt.Equal(got.Record.DeadlineAt) ||
				!r.RepeatableUntil.Equal(got.Now.Add(c.RepeatableFor)) || r.Lease != c.Lease || r.Retention != c.Retention || !r.CreatedAt.Equal(got.Now) {
				t.Errorf("%+v\n%+v", r, got.Record)
			}
		}},
		{"data/requests come back, each with its attempt", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			c.Request = []byte("first\x00\xff")
			got := b.wins(c)
			if r := b.get(c.ID); string(got.Record.Request) != string(c.Request) || string(r.Request) != string(c.Request) {
				t.Errorf("%q came back as %q and is stored as %q", c.Request, got.Record.Request, r.Request)
			}
			b.ends(endOf(c, got, failure(driver.Retryable, "busy")), true)
			d := ask("k")
			d.Request = []byte("second")
			b.wins(d)
			if r := b.get(c.ID); string(r.Request) != "second" {
				t.Errorf("the second attempt has the request %q", r.Request)
			}
		}},
		{"data/callers keep their own bytes", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			c.Request = []byte("request")
			got := b.wins(c)
			o := driver.Outcome{Status: driver.Success, Result: driver.Result{Codec: "raw", Meta: []byte("meta"), Data: []byte("data")}}
			b.ends(endOf(c, got, o), true)
			for _, used := range [][]byte{c.Request, o.Result.Meta, o.Result.Data} {
				clear(used) // a buffer that goes back to its pool
			}
			if r := b.get(c.ID); string(r.Request) != "request" || string(r.Result.Meta) != "meta" || string(r.Result.Data) != "data" {
				t.Errorf("the caller's buffers are the record's: %q, %q, %q", r.Request, r.Result.Meta, r.Result.Data)
			}
		}},
		{"data/what expired is still there to be read", func(t T, h *Harness) {
			b := open(t, h)
			c := ask("k")
			b.ends(endOf(c, b.wins(c), success("r")), true)
			b.shift(c.ID, 2*retention)
			if r := b.get(c.ID); r.Status != driver.Success || string(r.Result.Data) != "r" {
				t.Errorf("%+v", r)
			}
		}},
	}
}
