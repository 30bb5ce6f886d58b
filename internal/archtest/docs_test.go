package archtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLayerTables: the tables that people read are the one that is enforced.
func TestLayerTables(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- layers: written by make golden -->\n", "<!-- /layers -->"
	for _, file := range []string{"AGENTS.md", "CONTRIBUTING.md"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			before, rest, ok := strings.Cut(string(text), begin)
			_, after, ok2 := strings.Cut(rest, end)
			if !ok || !ok2 {
				t.Fatalf("%s has no place for the table: a line %q and below it %q", file, strings.TrimSpace(begin), end)
			}
			golden(t, file, []byte(before+begin+"\n"+layerTable()+"\n"+end+after))
		})
	}
}

func layerTable() string {
	var b strings.Builder
	b.WriteString("| layer | packages | may import |\n|---|---|---|\n")
	for _, l := range layers {
		var names []string
		for _, r := range rooms {
			if r.layer != l.name {
				continue
			}
			name := "`" + r.path + "`"
			if r.path == "." {
				name = "root"
			}
			if len(r.beside) > 0 {
				name += " (also `" + strings.Join(r.beside, "`, `") + "`)"
			}
			names = append(names, name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.name, strings.Join(names, ", "), l.says)
	}
	return b.String()
}

// TestGuaranteesAreShown: every test that the page of guarantees names is there.
func TestGuaranteesAreShown(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	if len(named) < 30 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !there[string(m[1])] {
			t.Errorf("docs/guarantees.md names %s, which is not there", m[1])
		}
	}
}

// TestMakefileHelp: every target explains itself, and is phony, so that no file of its name can stand in for it.
func TestMakefileHelp(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := targetsOf(string(text))
	for _, want := range []string{"demo", "test"} {
		if !slices.Contains(targets, want) {
			t.Errorf("the Makefile has no target %s, which the README's set-up names", want)
		}
	}
	report(t, unexplained(string(text)))

	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed here: what make help prints was not looked at")
	}
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory")
	cmd.Dir = root
	help, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make: %v\n%s", err, help)
	}
	for _, target := range targets {
		if !regexp.MustCompile(`(?m)^  make ` + regexp.QuoteMeta(target) + ` +\S`).Match(help) {
			t.Errorf("make help does not name %s:\n%s", target, help)
		}
	}
}

func TestUnexplained(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		problems   int
	}{
		{"explained", ".PHONY: a\na: b ## Does a\n", 0},
		{"with a slash", ".PHONY: a/b\na/b: ## Does a\n", 0},
		{"variables are no targets", "A := b\nC ?= d\n", 0},
		{"not explained", ".PHONY: a\na: b\n", 1},
		{"not phony", "a: ## Does a\n", 1},
		{"neither", "a-b:\n", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := unexplained(c.text); len(got) != c.problems {
				t.Errorf("got %q, want %d problems", got, c.problems)
			}
		})
	}
}

var targetLine = regexp.MustCompile(`(?m)^([A-Za-z][\w/-]*):(?:[^=].*)?$`)

func targetsOf(makefile string) []string {
	var targets []string
	for _, m := range targetLine.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
	}
	return targets
}

func unexplained(makefile string) []string {
	var problems []string
	for _, m := range targetLine.FindAllStringSubmatch(makefile, -1) {
		if !strings.Contains(m[0], " ## ") {
			problems = append(problems, "Makefile: "+m[1]+" has no sentence behind two hashes, so help cannot name it")
		}
		if !regexp.MustCompile(`(?m)^\.PHONY:.* ` + regexp.QuoteMeta(m[1]) + `( |$)`).MatchString(makefile) {
			problems = append(problems, "Makefile: "+m[1]+" is not phony")
		}
	}
	return problems
}
