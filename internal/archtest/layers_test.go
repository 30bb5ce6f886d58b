package archtest

// layer says what its packages may import inside this module.
type layer struct {
	name string
	may  []string // names of layers, or the folder of one package; "*" is everything
	says string   // the same for people
}

// room is one package, or with a last element of * each package directly below a folder.
type room struct {
	path     string   // folder inside the module, "." for the root package
	layer    string   // where it lives
	beside   []string // packages that it may import although its layer may not
	families []string // prefixes of third-party imports; "*" is any, none is the standard library only
}

const module = "github.com/onceward/onceward"

var layers = []layer{
	{name: "0", says: "the standard library; of each other only what is named"},
	{name: "1", may: []string{"0"}, says: "layer 0 and the standard library"},
	{name: "1x", may: []string{"0"}, says: "layer 0 and one family; never the root"},
	{name: "2", may: []string{"0", "."}, says: "layer 0 and the root"},
	{name: "2x", may: []string{"0", ".", "2"}, says: "layers 0 and 2, the root, and one family"},
	{name: "3", may: []string{"0", "1", "2"}, says: "layers 0 to 2"},
	{name: "4", may: []string{"*"}, says: "anything: SQL drivers, flags, YAML, wiring live only here"},
}

// rooms is the one place that says where a package lives. A package that is planned may have its room already.
var rooms = []room{
	{path: "key", layer: "0"},
	{path: "fingerprint", layer: "0"},
	{path: "dialect", layer: "0"},
	{path: "driver", layer: "0", beside: []string{"key", "fingerprint"}},
	{path: "state", layer: "0", beside: []string{"driver"}},

	{path: ".", layer: "1"},
	{path: "store/storetest", layer: "1"},
	{path: "store/faultstore", layer: "1"},
	{path: "store/memstore", layer: "1"},
	{path: "store/sqlstore", layer: "1"},
	{path: "store/tieredstore", layer: "1"},

	{path: "store/redisstore", layer: "1x"},

	{path: "oncehttp", layer: "2"},
	{path: "oncetest", layer: "2", beside: []string{"store/memstore"}},
	{path: "oncesql", layer: "2"},
	{path: "janitor", layer: "2"},
	{path: "unique", layer: "2"},
	{path: "statemachine", layer: "2"},
	{path: "optimistic", layer: "2"},
	{path: "token", layer: "2"},
	{path: "lock", layer: "2"},
	{path: "outbox", layer: "2"},
	{path: "inbox", layer: "2", beside: []string{"oncesql"}},
	{path: "job", layer: "2"},
	{path: "reconcile", layer: "2"},

	{path: "oncepgx", layer: "2x", families: []string{"github.com/jackc/pgx/v5"}},
	{path: "oncegrpc", layer: "2x", families: []string{"google.golang.org/grpc"}},
	{path: "observe/prom", layer: "2x", families: []string{"github.com/prometheus/client_golang"}},
	{path: "observe/otel", layer: "2x", families: []string{"go.opentelemetry.io/otel"}},

	{path: "gateway", layer: "3"},
	{path: "server", layer: "3"},
	{path: "client", layer: "3"},
	{path: "internal/console", layer: "3"},

	{path: "internal/cli", layer: "4", families: []string{"*"}},
	{path: "internal/config", layer: "4", families: []string{"*"}},
	{path: "internal/demo", layer: "4", families: []string{"*"}},
	{path: "internal/doctor", layer: "4", families: []string{"*"}},
	{path: "internal/migrate", layer: "4", families: []string{"*"}},
	{path: "internal/archtest", layer: "4", families: []string{"*"}},
	{path: "internal/leak", layer: "4", families: []string{"*"}},
	{path: "internal/teststore", layer: "4", families: []string{"*"}},
	{path: "internal/storeurl", layer: "4", families: []string{"*"}},
	{path: "internal/teststore/services", layer: "4", families: []string{"*"}},
	{path: "internal/cases", layer: "4", families: []string{"*"}},
	{path: "internal/crash", layer: "4", families: []string{"*"}},
	{path: "cmd/*", layer: "4", families: []string{"*"}},
	{path: "examples/*", layer: "4", families: []string{"*"}},
}
