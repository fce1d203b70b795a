package lint

import (
	"go/ast"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// modulePath is the module the rules are about.
const modulePath = "github.com/agent-troupe/troupe"

// tools are the trees that are programs or drive them: they own their clock and
// their goroutines, and no simulation runs them.
var tools = [...]string{"cmd", "internal/command", "examples", "bench", "conformance", "internal/parity"}

// rel is the package's path inside the module, and false for any other module
// and for the main package the go command makes up to run tests.
func rel(pass *analysis.Pass) (string, bool) {
	// A variant for tests is called "path [path.test]".
	path, _, _ := strings.Cut(pass.Pkg.Path(), " ")
	path, ours := strings.CutPrefix(path, modulePath+"/")
	return path, ours && !strings.HasSuffix(path, ".test")
}

// within says whether the package path lies in the tree, or is its root.
func within(path, tree string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

// library says whether the package is part of the library proper: the seams
// hold in it.
func library(pass *analysis.Pass) bool {
	path, ours := rel(pass)
	if !ours || pass.Pkg.Name() == "main" {
		return false
	}
	for _, tree := range tools {
		if within(path, tree) {
			return false
		}
	}
	return true
}

// ownsSeams says whether the package is where the seams are made: the kernel
// reads the real clock, starts the real goroutines and draws the real numbers.
func ownsSeams(pass *analysis.Pass) bool {
	path, _ := rel(pass)
	return within(path, "internal/kernel")
}

// mayStartGoroutines says whether the file may hold a bare go statement besides
// the kernel: only the stdio port of the agent's side, which stands on protocol
// alone and so has no executor to take.
func mayStartGoroutines(pass *analysis.Pass, file *ast.File) bool {
	path, _ := rel(pass)
	return path == "agent" && fileName(pass, file) == "stdio.go"
}

func fileName(pass *analysis.Pass, file *ast.File) string {
	return filepath.Base(pass.Fset.Position(file.FileStart).Filename)
}

func isTest(pass *analysis.Pass, file *ast.File) bool {
	return strings.HasSuffix(fileName(pass, file), "_test.go")
}

// layers lists the packages from the bottom up. A package may import those in
// the rows above its own in this list; packages in one row may not import each
// other. An entry stands for everything below it, or, when another entry lies
// below it, for itself alone.
var layers = [...][]string{
	{"base/spell", "base/shown", "base/wire", "base/jsonscan", "base/sse", "internal/hostgit", "internal/pages", "internal/search", "internal/textfile", "internal/web", "schema",
		"base", "contrib", "docs", "internal", "scripts"},
	{"internal/optionfile", "internal/parcel"},
	{"protocol"},
	{"acp", "acp/internal/gen", "internal/jsonshape", "model"},
	{"policy"},
	{"supervisor"},
	{"session"},
	{"actors/machine", "internal/breaker", "internal/durable", "internal/userproc"},
	{"dialect"},
	{"dialect/internal/build"},
	{"dialect/claude", "dialect/qoder", "dialect/acp"},
	{"transcript"},
	{"transcript/export", "transcript/store", "transcript/storetest"},
	{"internal/kernel"},
	{"internal/confine", "internal/osproc", "internal/mcpclient", "model/modeltest", "model/batch"},
	{"agent"},
	{"agent/backend", "agent/scripted"},
	{"acp/acpclient", "agent/cloud", "agent/embedded"},
	{"agent/cloud/cloudtest"},
	{"actors/user"},
	{"actors/callback"},
	{"actors/child", "actors/hooks", "actors/mcp", "actors/mirror", "actors/transport"},
	{"actors/router"},
	{"actors/router/routertest"},
	{"actors/callback/callbacktest"},
	{"actors"},
	{"runtime"},
	{"sdk", "inspect"},
	{"acp/acpagent", "inspect/ui"},
	{"fleet/journal"},
	{"fleet/journal/journaltest", "fleet/queue", "fleet/sharedmcp"},
	{"fleet/queue/queuetest"},
	{"fleet"},
	{"fleet/control", "fleet/estimate"},
	{"simtests"},
	{"conformance/modelapi"},
	{"conformance/differential"},
	{"internal/command"},
	{"conformance"},
	{"cmd", "examples", "bench", "internal/parity", "internal/recorded", "internal/redteam"},
}

// alone narrows some entries to fewer packages than their place would allow.
var alone = map[string][]string{
	"base/spell":           {},
	"base/shown":           {},
	"base/jsonscan":        {},
	"internal/hostgit":     {},
	"internal/search":      {},
	"internal/pages":       {},
	"internal/textfile":    {},
	"internal/web":         {},
	"schema":               {},
	"internal/optionfile":  {"base/spell", "base/shown", "internal/textfile"},
	"internal/parcel":      {"base/shown"},
	"protocol":             {"base/shown", "base/wire", "base/jsonscan"},
	"internal/jsonshape":   {"protocol", "base/jsonscan", "base/shown"},
	"acp":                  {},
	"base/sse":             {},
	"model":                {"protocol", "base/jsonscan", "base/sse"},
	"acp/internal/gen":     {},
	"base/wire":            {},
	"policy":               {"protocol"},
	"supervisor":           {},
	"session":              {"protocol", "policy", "supervisor", "base/shown", "base/wire"},
	"actors/machine":       {"protocol", "session", "base/shown"},
	"internal/breaker":     {"session"},
	"internal/durable":     {"session"},
	"internal/userproc":    {"session"},
	"internal/kernel":      {"session"},
	"agent":                {"protocol", "base/shown"},
	"internal/confine":     {"session"},
	"internal/osproc":      {"internal/kernel", "session"},
	"internal/mcpclient":   {"base/shown", "internal/breaker", "internal/kernel", "internal/userproc", "session"},
	"conformance/modelapi": {},
	"internal/parity":      {},
}

// confined names the modules that only one tree may import.
var confined = map[string]string{
	actorLibrary: "internal/kernel",
}

// actorLibrary is the module behind the kernel.
const actorLibrary = "github.com/asynkron/protoactor-go"

// permitted are the types of the actors that may have a lock, at most six. None belongs
// to two actors: each is between an actor and code outside of actors. No actor,
// callback or task runs under one of them. The comments list what is locked or called
// under each, apart from the kernel's seams; this is the only order of the locks.
var permitted = [6]string{
	// Users wait in it, on their own goroutines, for messages of the router. Under it:
	// Budget, the runtime's locks for events, the router's mailbox.
	"actors/user.Side",
	// All sessions of a runtime draw on it. Under it: nothing.
	"actors/user.Budget",
	// The launch, the exit and the pumps of a process are tasks, which block. Under it:
	// writer, mailboxes, methods of the process. The ladder signals under it, and so only a
	// process that is not yet taken for exited.
	"actors/transport.Link",
	// The queue for stdin, between the transport actor and the task that writes. It does not
	// share Link's lock: a Kill that blocks would block every answer. Under it: nothing.
	"actors/transport.writer",
	// In-process MCP servers call back, and users add servers, on their own goroutines.
	// Under it: nothing.
	"actors/mcp.Bridge",
	// It stands for a process and its pipes, between the tasks of its agent and the link's.
	// Under it: nothing; tasks are started.
	"actors/transport.memoryProcess",
}

// double is what tests run a router with.
const double = "actors/router/routertest.Router"
