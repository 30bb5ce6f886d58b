package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/observe/prom"
)

// described takes the names of what is registered.
type described struct {
	prometheus.Registerer
	names []string
}

var fqName = regexp.MustCompile(`fqName: "([a-z_]+)"`)

func (d *described) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc, 10)
	c.Describe(ch)
	close(ch)
	for desc := range ch {
		d.names = append(d.names, fqName.FindStringSubmatch(desc.String())[1])
	}
	return nil
}

// TestGatewayPage: the page has every metric, and every code with its exit status.
func TestGatewayPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "gateway.md"))
	if err != nil {
		t.Fatal(err)
	}
	var d described
	if _, err := prom.New(&d); err != nil {
		t.Fatal(err)
	}
	if len(d.names) < 10 {
		t.Fatalf("only %q were registered", d.names)
	}
	for _, name := range d.names {
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("no row for the metric %s", name)
		}
	}
	for _, code := range onceward.Codes() {
		row := regexp.MustCompile(`(?m)^\| [a-z_, ]*\b` + string(code) + `\b.*\| ` + string(code.Retry()) + ` \| ` + strconv.Itoa(code.Exit()) + ` \|$`)
		if !row.Match(page) {
			t.Errorf("no row for the code %s with retry %s and exit %d", code, code.Retry(), code.Exit())
		}
	}
}
