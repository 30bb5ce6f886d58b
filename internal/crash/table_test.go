//go:build unix

package crash

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

//go:embed testdata/crash.txt
var tableText string

var showMatrix = flag.Bool("matrix", false, "print what came of each point")

// row is a point with its verdicts, one for each column of the table; none where the column has no such point.
type row struct {
	name string
	want []string
}

// columns of the table, in their order.
var columns = []column{
	{"sqlite, kill -9", killed},
	{"sqlite, lost", func(t *testing.T, at int) (string, string, []string) { return lost(t, onSQLite(t, t.TempDir()), at) }},
	{"memory, lost", func(t *testing.T, at int) (string, string, []string) { return lost(t, onMemory(t.TempDir()), at) }},
}

type column struct {
	name string
	// run makes a run whose fault is at a point, and returns that point's name as the run has it and what became of it.
	run func(t *testing.T, at int) (name, verdict string, wrong []string)
}

const none = "-"

func readTable(t *testing.T) (table []row) {
	t.Helper()
	for line := range strings.Lines(tableText) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		n := len(columns)
		if len(words) <= n {
			t.Fatalf("crash.txt: %q: a line has %d verdicts and a name", line, n)
		}
		r := row{strings.Join(words[n:], " "), words[:n]}
		for _, v := range r.want {
			if v != done && v != unknown && v != none {
				t.Fatalf("crash.txt: %q: no verdict", v)
			}
		}
		table = append(table, r)
	}
	return table
}

// TestCrashTable makes a run for each point of the table, and puts what came of it beside what the table says.
func TestCrashTable(t *testing.T) {
	t.Parallel()
	start := time.Now()
	table := readTable(t)
	var mu sync.Mutex
	found := make([][]string, len(table)) // by row and column
	for i := range found {
		found[i] = slices.Repeat([]string{"."}, len(columns))
	}
	t.Run("points", func(t *testing.T) {
		for c, col := range columns {
			points := 0
			for i, r := range table {
				want := r.want[c]
				if want == none {
					continue
				}
				points++
				at := points
				t.Run(col.name+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					name, verdict, wrong := col.run(t, at)
					if name != r.name {
						wrong = append(wrong, fmt.Sprintf("point %d is %q", at, name))
					}
					for _, w := range wrong {
						t.Error(w)
					}
					if verdict != want {
						t.Errorf("%s, want %s", verdict, want)
						verdict += ", want " + want
					}
					if len(wrong) > 0 {
						verdict += ", wrong"
					}
					mu.Lock()
					defer mu.Unlock()
					found[i][c] = verdict
				})
			}
		}
	})
	if *showMatrix {
		printMatrix(table, found, time.Since(start))
	}
}

// TestCrashTableHasEveryPoint: a run without faults passes the points of the table, all of them and no others.
func TestCrashTableHasEveryPoint(t *testing.T) {
	t.Parallel()
	table := readTable(t)
	for c, w := range []*world{0: onSQLite(t, t.TempDir()), 2: onMemory(t.TempDir())} {
		if w == nil {
			continue // the same store as the column before
		}
		var want []string
		for _, r := range table {
			if r.want[c] != none {
				want = append(want, r.name)
			}
		}
		p := w.process(t, &points{}, 0)
		if answer, info, err := p.do(t.Context()); err != nil || !info.Recorded {
			t.Errorf("%q %+v %v", answer, info, err)
		}
		p.end(t)
		if got := p.points.names; !slices.Equal(got, want) {
			t.Errorf("%s: a run has these points:\n%s\nthe table has these:\n%s", columns[c].name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if verdict, wrong := w.verdict(t); verdict != done || wrong != nil {
			t.Errorf("%s: %s %q", columns[c].name, verdict, wrong)
		}
	}
}

// TestCrashTableKeepsItsPromise: the table itself says unknown only while the bank was, or was about to be, asked and there is no
// result. A kill in between leaves nothing else.
func TestCrashTableKeepsItsPromise(t *testing.T) {
	t.Parallel()
	open := false
	for _, r := range readTable(t) {
		open = open || r.name == "after progress bank begun"
		for c, v := range r.want {
			if v == unknown && !open || c == 0 && v == done && open {
				t.Errorf("%s, %s: %s", r.name, columns[c].name, v)
			}
		}
		open = open && r.name != "before progress bank done"
	}
}

// TestCrashTableSeesWhatIsDoneTwice: a manifest that says of the bank that it knows keys, which is a lie, does not get through.
func TestCrashTableSeesWhatIsDoneTwice(t *testing.T) {
	t.Parallel()
	for c, w := range []*world{1: onSQLite(t, t.TempDir()), 2: onMemory(t.TempDir())} {
		if w == nil {
			continue // in another process
		}
		w.honoured = 24 * time.Hour
		_, verdict, wrong := lost(t, w, number(t, "after bank"))
		if is := w.tally(t); verdict != done || len(wrong) != 1 || is.Transfers != 2 {
			t.Errorf("%s: %s %q, %+v", columns[c].name, verdict, wrong, is)
		}
	}
}

// number returns that of a point; the same on every store up to where settle begins.
func number(t *testing.T, name string) (n int) {
	t.Helper()
	for _, r := range readTable(t) {
		if r.want[0] != none {
			n++
		}
		if r.name == name {
			return n
		}
	}
	t.Fatalf("there is no point %q", name)
	return 0
}

// killed makes a run in another process, which is killed at a point.
func killed(t *testing.T, at int) (name, verdict string, wrong []string) {
	dir := t.TempDir()
	w := onSQLite(t, dir)
	out, err := childAt(t, crashVar, at, dir).Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
	passed := strings.Split(string(bytes.TrimSpace(out)), "\n")
	if len(passed) != at {
		wrong = append(wrong, fmt.Sprintf("it was killed at point %d", len(passed)))
	}
	w.lapse(t)
	verdict, more := w.verdict(t)
	return passed[len(passed)-1], verdict, append(wrong, more...)
}

// lost makes a run that loses, before a point, what it asks for, or after it the answer. There is no lease to wait for then.
func lost(t *testing.T, w *world, at int) (name, verdict string, wrong []string) {
	p := w.process(t, &points{at: at, act: func() error { return errLost }}, 0)
	first, info, err := p.do(t.Context())
	p.end(t)
	if len(p.points.names) < at {
		t.Fatalf("there is no point %d", at)
	}
	if r := w.record(t).Record; !r.Finished() && !r.Unclear() {
		wrong = append(wrong, fmt.Sprintf("the record says %v", r.Status))
	}
	verdict, more := w.verdict(t)
	if err == nil && (!info.Recorded || verdict != done) {
		wrong = append(wrong, fmt.Sprintf("got %q %+v, and it was not the result", first, info))
	}
	return p.points.names[at-1], verdict, append(wrong, more...)
}

func printMatrix(table []row, found [][]string, took time.Duration) {
	var b strings.Builder
	line := func(name string, cells ...string) {
		fmt.Fprintf(&b, "%-30s", name)
		for _, c := range cells {
			fmt.Fprintf(&b, "  %-16s", c)
		}
		b.WriteString("\n")
	}
	var heads []string
	runs, bad := 0, 0
	for _, c := range columns {
		heads = append(heads, c.name)
	}
	line("point", heads...)
	for i, r := range table {
		cells := slices.Clone(found[i])
		for c, v := range cells {
			switch {
			case r.want[c] == none:
				cells[c] = none
			case v != r.want[c]:
				bad++
				fallthrough
			default:
				runs++
			}
		}
		line(r.name, cells...)
	}
	fmt.Fprintf(&b, `
%d runs in %v, %d not as testdata/crash.txt says.
kill -9: the process dies at the point; the lease lapses, the janitor sweeps, the key comes again.
lost: before a call the request is lost, after it the answer; the process lives.
Memory is by lost answers only: it ends with its process. It has no transactions, so its settle is a natural step.
done: each effect is in the other side's ledger once, and duplicates get the result. unknown: the error names the step.
`, runs, took.Round(10*time.Millisecond), bad)
	_, _ = os.Stdout.WriteString(b.String())
}
