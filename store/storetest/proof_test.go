package storetest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward/driver"
	"github.com/onceward/onceward/state"
)

// twisted is a right store with one behaviour changed by a twist.
type twisted struct {
	data *twistedData
	skew time.Duration // of this object's own clock
	twist
}

type twistedData struct {
	mu      sync.Mutex
	records map[string]*driver.Record
	id      driver.StoreID
	floor   int64
}

// twist changes one behaviour. The zero value changes none.
type twist struct {
	name   func(c *driver.Claim) string                                                      // what identifies a record
	before func(cur *driver.Record, now time.Time)                                           // spoils what a claim reads
	claim  func(cur, next *driver.Record, v *driver.Verdict, c *driver.Claim, now time.Time) // spoils its decision
	renew  func(cur *driver.Record, rn *driver.Renewal, now time.Time) bool                  // grants what it should not
	finish func(cur *driver.Record, f *driver.Finish, now time.Time) (grant, refuse bool)    // of a finish
	stored func(r *driver.Record, f *driver.Finish)                                          // spoils what is written at a finish
	steps  func(cur, next *driver.Record, p *driver.Progress, ok *bool, now time.Time)       // spoils what is written of steps
	page   func(q *driver.Scan, p *driver.Page, all []driver.Snapshot)                       // spoils a page
	purge  func(cur *driver.Record, p *driver.Purge, now time.Time) bool                     // drops what it should not
	floor  func(p *driver.Purge) int64                                                       // spoils the floor
	racy   bool                                                                              // a claim reads and writes apart
	skewed bool                                                                              // the second object has a clock of its own
}

func newTwisted(w twist) *twisted {
	return &twisted{data: &twistedData{records: map[string]*driver.Record{}, id: driver.StoreID(newOwner())}, twist: w}
}

func (s *twisted) now() time.Time { return time.Now().UTC().Truncate(time.Microsecond).Add(s.skew) }

func (s *twisted) key(c *driver.Claim) string {
	if s.name != nil {
		return s.name(c)
	}
	return string(c.ID[:])
}

// find looks a record up by its ID, whatever name it has.
func (s *twisted) find(id driver.ID) *driver.Record {
	for _, r := range s.data.records {
		if r.ID == id {
			return r
		}
	}
	return nil
}

func (s *twisted) Claim(_ context.Context, c driver.Claim) (driver.Claimed, error) {
	if err := c.Check(); err != nil {
		return driver.Claimed{}, err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	reply := driver.Claimed{Now: s.now(), Store: s.data.id}
	cur := s.data.records[s.key(&c)]
	if cur != nil {
		cp := *cur
		cur = &cp
		if s.before != nil {
			s.before(cur, reply.Now)
		}
	}
	var w state.Write
	reply.Record, reply.Verdict, reply.Takeover, w = state.Claim(cur, &c, reply.Now, s.data.floor)
	if s.claim != nil {
		s.claim(cur, &reply.Record, &reply.Verdict, &c, reply.Now)
	}
	if s.racy {
		s.data.mu.Unlock()
		<-time.After(time.Millisecond) // in a bubble it is over when nobody else has anything to do: all have read
		s.data.mu.Lock()
	}
	if w != state.Keep {
		r := reply.Record
		r.Request = bytes.Clone(r.Request)
		s.data.records[s.key(&c)] = &r
	}
	return reply, nil
}

func (s *twisted) Renew(_ context.Context, rn driver.Renewal) error {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	cur := s.find(rn.ID)
	next, ok := state.Renew(cur, &rn, s.now())
	if !ok && cur != nil && s.renew != nil && s.renew(cur, &rn, s.now()) {
		next, ok = *cur, true
		next.LeaseUntil = s.now().Add(rn.Lease)
	}
	if !ok {
		return driver.ErrLeaseLost
	}
	*cur = next
	return nil
}

func (s *twisted) Purge(_ context.Context, p driver.Purge) (n int, err error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	s.data.floor = max(s.data.floor, p.Floor)
	if s.floor != nil {
		s.data.floor = s.floor(&p)
	}
	for name, r := range s.data.records {
		if slices.Contains(p.IDs, r.ID) && (state.Expired(r, s.now()) && r.Fence <= p.Floor || s.purge != nil && s.purge(r, &p, s.now())) {
			delete(s.data.records, name)
			n++
		}
	}
	return n, nil
}

func (s *twisted) Progress(_ context.Context, p driver.Progress) error {
	if err := p.Check(); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	cur := s.find(p.ID)
	next, ok := state.Progress(cur, &p, s.now())
	if cur != nil && s.steps != nil {
		s.steps(cur, &next, &p, &ok, s.now())
	}
	if !ok {
		return driver.ErrLeaseLost
	}
	next.Steps = slices.Clone(next.Steps)
	*cur = next
	return nil
}

func (s *twisted) Finish(_ context.Context, f driver.Finish) (driver.Finished, error) {
	if err := f.Check(); err != nil {
		return driver.Finished{}, err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	reply := driver.Finished{Now: s.now()}
	cur := s.find(f.Claim.ID)
	own := f
	if cur != nil && s.finish != nil {
		grant, refuse := s.finish(cur, &f, reply.Now)
		if refuse {
			return driver.Finished{Record: *cur, Now: reply.Now}, nil
		}
		if grant {
			own.Fence, own.Claim.Owner = cur.Fence, cur.Owner
		}
	}
	var w state.Write
	reply.Record, reply.Applied, w = state.Finish(cur, &own, reply.Now)
	reply.Record.Result.Data, reply.Record.Result.Meta = bytes.Clone(reply.Record.Result.Data), bytes.Clone(reply.Record.Result.Meta)
	if s.stored != nil && w != state.Keep {
		s.stored(&reply.Record, &f)
	}
	switch w {
	case state.Insert:
		r := reply.Record
		s.data.records[s.key(&f.Claim)] = &r
	case state.Update:
		*cur = reply.Record
	}
	return reply, nil
}

func (s *twisted) Settle(_ context.Context, st driver.Settlement) (driver.Settled, error) {
	if err := st.Check(); err != nil {
		return driver.Settled{}, err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	cur := s.find(st.ID)
	if cur == nil {
		return driver.Settled{}, driver.ErrNotFound
	}
	reply := driver.Settled{Now: s.now()}
	var w state.Write
	reply.Record, reply.Applied, w = state.Settle(cur, &st, reply.Now)
	if w == state.Update {
		*cur = reply.Record
	}
	return reply, nil
}

func (s *twisted) Get(_ context.Context, id driver.ID) (driver.Snapshot, error) {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	cur := s.find(id)
	if cur == nil {
		return driver.Snapshot{}, driver.ErrNotFound
	}
	return driver.Snapshot{Record: *cur, Now: s.now()}, nil
}

func (s *twisted) Scan(_ context.Context, q driver.Scan) (page driver.Page, _ error) {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	names := slices.Sorted(maps.Keys(s.data.records))
	at, found := slices.BinarySearch(names, q.After)
	if found {
		at++
	}
	var all []driver.Snapshot
	for _, name := range names[at:min(at+q.Limit, len(names))] {
		r := *s.data.records[name]
		all = append(all, driver.Snapshot{Record: r, Now: s.now()})
		r.Result.Data, r.Request = nil, nil
		if state.Matches(q.Which, &r, s.now()) {
			page.Snapshots = append(page.Snapshots, driver.Snapshot{Record: r, Now: s.now()})
		}
		page.Next = name
	}
	if at+q.Limit >= len(names) {
		page.Next = ""
	}
	if s.page != nil {
		s.page(&q, &page, all)
	}
	return page, nil
}

func (w twist) harness() *Harness {
	return &Harness{
		Open: func(T) driver.Store { return newTwisted(w) },
		Second: func(_ T, first driver.Store) driver.Store {
			second := *first.(*twisted)
			if w.skewed {
				second.skew = time.Hour
			}
			return &second
		},
		Edit: func(_ T, s driver.Store, id driver.ID, change func(*driver.Record)) {
			tw := s.(*twisted)
			tw.data.mu.Lock()
			defer tw.data.mu.Unlock()
			change(tw.find(id))
		},
	}
}

// TestBrokenStoresAreSeen: each broken store fails exactly the case that names its fault, and passes every other.
func TestBrokenStoresAreSeen(t *testing.T) {
	t.Parallel()
	for _, broken := range []struct {
		name string
		twist
		fails []string
	}{
		{"nothing is wrong", twist{}, nil},
		{"read, then write", twist{racy: true}, []string{"claim/one of many takes over", "claim/one of many wins",
			"claim/one of many wins over two store objects", "finish/late truth or a takeover, never both"}},
		{"NULL lease means lapsed", twist{before: func(cur *driver.Record, now time.Time) {
			if cur.Status == driver.Processing && cur.LeaseUntil.IsZero() {
				cur.LeaseUntil = now.Add(-10 * lease)
			}
		}}, []string{"claim/no lease never lapses"}},
		{"purges what runs", twist{purge: func(cur *driver.Record, _ *driver.Purge, _ time.Time) bool { return cur.Status == driver.Processing }},
			[]string{"purge/nothing that was claimed again", "purge/what has expired, and nothing else"}},
		{"purges what is unknown", twist{purge: func(cur *driver.Record, _ *driver.Purge, _ time.Time) bool { return cur.Unclear() }},
			[]string{"purge/what has expired, and nothing else"}},
		{"purges before its time", twist{purge: func(cur *driver.Record, _ *driver.Purge, _ time.Time) bool { return cur.Finished() }},
			[]string{"purge/nothing above the floor", "purge/nothing that was claimed again", "purge/what has expired, and nothing else"}},
		{"purges above the floor", twist{purge: func(cur *driver.Record, _ *driver.Purge, now time.Time) bool { return state.Expired(cur, now) }},
			[]string{"purge/nothing above the floor"}},
		{"a purge forgets fences", twist{floor: func(*driver.Purge) int64 { return 0 }}, []string{"purge/fences outlive it"}},
		{"a purge lowers the floor", twist{floor: func(p *driver.Purge) int64 { return p.Floor }}, []string{"purge/fences outlive it"}},
		{"application clock", twist{skewed: true}, []string{"claim/store objects agree on the time"}},
		{"finish ignores the fence", twist{finish: func(cur *driver.Record, f *driver.Finish, _ time.Time) (bool, bool) {
			return cur.Owner == f.Claim.Owner, false
		}}, []string{"finish/not with another fence"}},
		{"finish after a takeover", twist{finish: func(cur *driver.Record, f *driver.Finish, _ time.Time) (bool, bool) {
			// Keys of the races have 16 bytes: they would see this too, whenever the claim comes first.
			return cur.Owner != f.Claim.Owner && cur.Status == driver.Processing && len(cur.Key) == 1, false
		}}, []string{"finish/not after a takeover"}},
		{"takeover without a new fence", twist{claim: func(cur, next *driver.Record, _ *driver.Verdict, _ *driver.Claim, _ time.Time) {
			if cur != nil && cur.Status == driver.Processing && next.Owner != cur.Owner {
				next.Fence = cur.Fence
			}
		}}, []string{"claim/a takeover has a new fence"}},
		{"PROCESSING expires", twist{before: func(cur *driver.Record, now time.Time) {
			if cur.Status == driver.Processing && now.Sub(cur.CreatedAt) > 5*retention && cur.Lease > retention {
				cur.Status, cur.ExpiresAt = driver.Success, now
			}
		}}, []string{"claim/PROCESSING never expires"}},
		{"scope ignored", twist{name: func(c *driver.Claim) string { return c.Operation + c.Key }}, []string{"data/scopes are apart"}},
		{"case-folding keys", twist{name: func(c *driver.Claim) string {
			folded := *c
			if len(c.Key) == 3 {
				folded.Key = strings.ToLower(c.Key)
			}
			id := identified(folded).ID
			return string(id[:])
		}}, []string{"data/keys keep their case"}},
		{"result cut", twist{stored: func(r *driver.Record, _ *driver.Finish) { r.Result.Data = r.Result.Data[:min(len(r.Result.Data), 255)] }},
			[]string{"data/results come back byte for byte"}},
		{"the caller's buffer is kept", twist{stored: func(r *driver.Record, f *driver.Finish) { r.Result = f.Outcome.Result }},
			[]string{"data/callers keep their own bytes"}},
		{"retention counts from the claim", twist{stored: func(r *driver.Record, _ *driver.Finish) {
			if !r.ExpiresAt.IsZero() {
				r.ExpiresAt = r.CreatedAt.Add(r.Retention)
			}
		}}, []string{"finish/retention counts from the finish"}},
		{"a scan returns results", twist{page: func(q *driver.Scan, p *driver.Page, all []driver.Snapshot) {
			if q.Which == driver.All {
				p.Snapshots = all
			}
		}}, []string{"scan/sees every record once"}},
		{"a scan loses the edge of a page", twist{page: func(_ *driver.Scan, p *driver.Page, _ []driver.Snapshot) {
			if p.Next != "" {
				p.Snapshots = p.Snapshots[:len(p.Snapshots)-1]
			}
		}}, []string{"scan/sees every record once"}},
		{"a scan does not choose", twist{page: func(_ *driver.Scan, p *driver.Page, all []driver.Snapshot) {
			p.Snapshots = all
			for i := range all {
				all[i].Record.Result.Data = nil
			}
		}}, []string{"scan/chooses"}},
		{"renew after a lapse", twist{renew: func(cur *driver.Record, rn *driver.Renewal, _ time.Time) bool {
			return cur.Owner == rn.Owner && cur.Fence == rn.Fence && cur.Status == driver.Processing
		}}, []string{"renew/not after the lease"}},
		{"a lost reply is a conflict", twist{claim: func(cur, _ *driver.Record, v *driver.Verdict, c *driver.Claim, _ time.Time) {
			if cur != nil && cur.Owner == c.Owner && *v == driver.GotClaim {
				*v = driver.InFlight
			}
		}}, []string{"claim/a lost reply is answered again"}},
		{"an intent after a lapse", twist{steps: func(cur, next *driver.Record, p *driver.Progress, ok *bool, _ time.Time) {
			if !*ok && p.Intent && cur.Owner == p.Owner && cur.Fence == p.Fence && cur.Status == driver.Processing &&
				p.Version >= cur.StepsVersion {
				*next, *ok = *cur, true
			}
		}}, []string{"steps/no intent after the lease"}},
		{"a late write is taken", twist{steps: func(cur, next *driver.Record, p *driver.Progress, ok *bool, _ time.Time) {
			if p.Version < cur.StepsVersion {
				*next, *ok = *cur, true
				next.Steps, next.StepsVersion = p.Steps, p.Version
			}
		}}, []string{"steps/a late write is overtaken"}},
		{"steps do not renew", twist{steps: func(cur, next *driver.Record, _ *driver.Progress, _ *bool, _ time.Time) {
			next.LeaseUntil = cur.LeaseUntil
		}}, []string{"steps/renew the lease"}},
		{"steps leave on_lapse alone", twist{steps: func(cur, next *driver.Record, p *driver.Progress, _ *bool, _ time.Time) {
			if p.RepeatableFor == 0 {
				next.OnLapse = cur.OnLapse
			}
		}}, []string{"steps/say what a lapse means"}},
		{"a late result is lost", twist{steps: func(cur, _ *driver.Record, _ *driver.Progress, ok *bool, _ time.Time) {
			*ok = *ok && cur.Status == driver.Processing
		}}, []string{"steps/a late result is taken while nobody claimed"}},
		{"steps are forgotten by the next attempt", twist{claim: func(cur, next *driver.Record, v *driver.Verdict, _ *driver.Claim, _ time.Time) {
			if cur != nil && *v == driver.GotClaim {
				next.Steps = nil
			}
		}}, []string{"steps/a later attempt is told", "steps/a resolution tells of them", "steps/a takeover is told", "steps/begun ones outlive an end that can't speak for them"}},
		{"late truth refused", twist{finish: func(cur *driver.Record, _ *driver.Finish, now time.Time) (bool, bool) {
			return false, cur.Status == driver.Processing && !state.Held(cur, now)
		}}, []string{"finish/late truth is taken when nobody came"}},
	} {
		t.Run(broken.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // which also sees a goroutine that a case leaves behind
				var failed []string
				for _, c := range Cases() {
					if text := failureOf(t.Context(), c, broken.harness()); text != "" {
						failed = append(failed, c.Name)
						t.Logf("%s: %s", c.Name, text)
					}
				}
				slices.Sort(failed)
				if !slices.Equal(failed, broken.fails) {
					t.Errorf("failed %q, want %q", failed, broken.fails)
				}
			})
		})
	}
}

// TestModelSeesBrokenStores: random calls find a fault of decision without knowing what to look for.
func TestModelSeesBrokenStores(t *testing.T) {
	t.Parallel()
	for _, broken := range []struct {
		name string
		twist
		fails bool
	}{
		{"nothing is wrong", twist{}, false},
		{"takeover without a new fence", twist{claim: func(cur, next *driver.Record, _ *driver.Verdict, _ *driver.Claim, _ time.Time) {
			if cur != nil && cur.Status == driver.Processing && next.Owner != cur.Owner {
				next.Fence = cur.Fence
			}
		}}, true},
		{"renew after a lapse", twist{renew: func(cur *driver.Record, rn *driver.Renewal, _ time.Time) bool {
			return cur.Owner == rn.Owner && cur.Fence == rn.Fence && cur.Status == driver.Processing
		}}, true},
		{"late truth refused", twist{finish: func(cur *driver.Record, _ *driver.Finish, now time.Time) (bool, bool) {
			return false, cur.Status == driver.Processing && !state.Held(cur, now)
		}}, true},
		{"a tombstone is lost", twist{stored: func(r *driver.Record, _ *driver.Finish) { r.Result.Tombstone = false }}, true},
		{"a time is lost", twist{claim: func(_, next *driver.Record, _ *driver.Verdict, _ *driver.Claim, _ time.Time) {
			next.RepeatableUntil = time.Time{}
		}}, true},
	} {
		t.Run(broken.name, func(t *testing.T) {
			t.Parallel()
			text := failureOf(t.Context(), Case{Run: func(t T, h *Harness) { Model(t, h, 1, 5000) }}, broken.harness())
			if (text != "") != broken.fails {
				t.Errorf("the model says %q", text)
			}
		})
	}
}

// recorder is a T that remembers the first failure.
type recorder struct {
	ctx  context.Context //nolint:containedctx // as a test has it
	mu   sync.Mutex
	text string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Cleanup(func())           {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.text == "" {
		r.text = fmt.Sprintf(format, args...)
	}
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(string, ...any) { r.Fatalf("a case of the proof was skipped") }

// failureOf runs one case and returns how it failed, or nothing.
func failureOf(ctx context.Context, c Case, h *Harness) string {
	r := &recorder{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(r, h)
	}()
	<-done
	return r.text
}
