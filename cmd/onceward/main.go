// Command onceward makes work that may be run twice take effect once: a gateway in front of any HTTP service, with the
// tools around it.
package main

import (
	"os"

	"github.com/onceward/onceward/internal/cli"
)

func main() { os.Exit(cli.Main()) }
