package docs_test

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

const module = "github.com/agent-troupe/troupe"

// guides are the documents that TestGuides checks: each block of Go code is a whole
// file, and the names of this module's packages exist.
var guides = []string{"../README.md", "getting-started.md", "migration.md", "deployment.md", "events.md", "simulation.md", "fleets.md", "machines.md", "embedded.md", "supervision.md", "sessions.md", "cloud.md"}

// exportData maps each package that the code of the guides may import to the file with
// its export data from the compiler: packages of this module, and their imports.
func exportData(t *testing.T) map[string]string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	for _, p := range []string{"sdk", "runtime", "policy", "supervisor", "agent/scripted", "agent/embedded", "agent/embedded/demo", "model", "model/batch", "protocol/tools", "protocol/view", "simtests", "inspect", "fleet", "transcript", "transcript/export", "transcript/store", "transcript/storetest"} {
		args = append(args, module+"/"+p)
	}
	args = append(args, "log", "os/signal", "testing", "testing/synctest", "github.com/stretchr/testify/require")
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[name] = file
	}
	return files
}

// TestGuides type-checks each Go block of the guides, and looks up each name of this
// module that they show as code, such as `sdk.Client.Close` or `Options.Policy`.
func TestGuides(t *testing.T) {
	t.Parallel()
	files := exportData(t)
	fset := token.NewFileSet()
	imported := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	packages := map[string]*types.Package{}
	for name := range files {
		if strings.HasPrefix(name, module+"/") && !strings.Contains(name, "/internal/") && !strings.Contains(name, "/actors/") {
			p, err := imported.Import(name)
			require.NoError(t, err)
			packages[path.Base(name)] = p
		}
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	names := regexp.MustCompile("`\\*?(?:\\[\\])?(\\w+)((?:\\.[A-Z]\\w*)+)(?:\\[T\\])?(?:\\([^`]*\\))?`")
	for _, guide := range guides {
		raw, err := os.ReadFile(guide)
		require.NoError(t, err)
		document := string(raw)
		for _, at := range blocks.FindAllStringSubmatchIndex(document, -1) {
			code := document[at[2]:at[3]]
			if strings.Contains(code, `"`+module+`/contrib/`) {
				continue // another module, which compares the code with its example
			}
			where := fmt.Sprintf("%s:%d", guide, 1+strings.Count(document[:at[2]], "\n"))
			file, err := parser.ParseFile(fset, where, code, parser.ParseComments|parser.SkipObjectResolution)
			if !assert.NoError(t, err, "Go code of a guide is a whole file") {
				continue
			}
			formatted, err := format.Source([]byte(code))
			require.NoError(t, err)
			assert.Equal(t, string(formatted), code, "%s is not formatted", where)
			config := types.Config{Importer: imported, Error: func(err error) { assert.NoError(t, err) }}
			_, err = config.Check(file.Name.Name, fset, []*ast.File{file}, nil)
			require.NoError(t, err, where)
		}
		prose := blocks.ReplaceAllString(document, "")
		for _, found := range names.FindAllStringSubmatch(prose, -1) {
			name := strings.Split(found[2], ".")[1:]
			switch p := packages[found[1]]; {
			case p != nil:
				assert.True(t, declared(p, name), "%s: there is no %s", guide, found[0])
			case declared(packages["sdk"], []string{found[1]}): // such as Options.Policy
				assert.True(t, declared(packages["sdk"], append([]string{found[1]}, name...)), "%s: there is no %s", guide, found[0])
			}
		}
	}
}

// declared reports whether the package declares names[0], and whether each further name
// is a field or method of the one before it.
func declared(p *types.Package, names []string) bool {
	object := p.Scope().Lookup(names[0])
	for _, name := range names[1:] {
		if object == nil {
			return false
		}
		object, _, _ = types.LookupFieldOrMethod(object.Type(), true, p, name)
	}
	return object != nil
}

// TestEventsAreListed compares the table of events.md with the events of package
// session and their levels.
func TestEventsAreListed(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("events.md")
	require.NoError(t, err)
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `session\\.(\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(string(raw), -1) {
		listed[row[1]] = row[2]
	}
	levels := map[string]string{}
	for _, e := range []session.Event{
		&session.StateChanged{}, &session.WarningIssued{}, &session.CallbackFailed{}, &session.LateAnswer{}, &session.NoiseLine{},
		&session.OversizeLine{}, &session.MessagesDropped{}, &session.UnexpectedFrame{}, &session.RepeatedRequest{}, &session.TurnStalled{}, &session.TurnRetries{}, &session.AuthExpired{}, &session.Steered{},
		&session.BreakerOpened{}, &session.BreakerHalfOpened{}, &session.BreakerReclosed{}, &session.StartHeld{}, &session.Recovering{}, &session.Recovered{}, &session.MirrorPending{}, &session.Mirrored{}, &session.MirrorFailed{},
		&session.CloudOpened{}, &session.CloudReconnecting{}, &session.CloudLeft{}, &session.RepeatedCall{}, &session.StderrLine{}, &session.ActorFailed{}, &session.Supervision{}, &session.EventsLost{}, &session.Ended{Reason: io.EOF},
	} {
		levels[strings.TrimPrefix(fmt.Sprintf("%T", e), "*session.")] = strings.ToLower(e.Level().String())
	}
	assert.Equal(t, levels, listed)
	files, err := filepath.Glob("../session/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, method := range regexp.MustCompile(`(?m)^func \(\*(\w+)\) isEvent\(\)`).FindAllStringSubmatch(string(source), -1) {
			if method[1] == "CloudInterrupted" || method[1] == "Isolated" { // they have two levels
				assert.Contains(t, string(raw), "| `session."+method[1]+"` | info, warn if ")
				continue
			}
			assert.Contains(t, levels, method[1], "an event that this test does not know")
		}
	}
}

// TestMigrationNamesWhatParityHas checks that migration.md has each function, option
// and method of the vendors' SDKs that the parity ledger has a row for.
func TestMigrationNamesWhatParityHas(t *testing.T) {
	t.Parallel()
	parity, err := os.ReadFile("../internal/parity/testdata/parity.md")
	require.NoError(t, err)
	migration, err := os.ReadFile("migration.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `\\w+/(?:function|option|method)/\\w+` \\| ([^|]+) \\|").FindAllStringSubmatch(string(parity), -1)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		for _, name := range regexp.MustCompile("`([a-z]\\w+)`").FindAllStringSubmatch(row[1], -1) {
			there := regexp.MustCompile("[`.@]" + name[1] + "`").Match(migration)
			assert.True(t, there, "migration.md does not have %s, which the parity ledger has", name[0])
		}
	}
}
