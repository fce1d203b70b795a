package sdk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// secretName matches the names of fields that hold secrets. Those of secretHere do so in
// the types that are listed, and are ordinary text elsewhere.
var (
	secretName = regexp.MustCompile(`(?i)token$|apikey$|accountkey|secret|passw|credentials?$|cookie|bearer|header|env$|settings$`)
	secretHere = regexp.MustCompile(secretName.String() + `|^Files$|^Value$|^Content$`)
)

// secretive are the public types that hold secrets, or what holds some.
var secretive = map[string]any{
	"agent.Launch": agent.Launch{}, "cloud.Config": cloud.Config{},
	"dialect.Launch": dialect.Launch{}, "dialect.EnvVar": dialect.EnvVar{}, "dialect.File": dialect.File{},
	"dialect.Input": dialect.Input{}, "dialect.Facts": dialect.Facts{}, "session.MCPServerConfig": session.MCPServerConfig{}, "session.Auth": session.Auth{},
	"session.AgentDefinition": session.AgentDefinition{}, "session.AgentMCPServer": session.AgentMCPServer{},
	"protocol.AgentDefinition": protocol.AgentDefinition{}, "protocol.AgentMCPServer": protocol.AgentMCPServer{},
	"protocol.ApplyFlagSettingsRequest": protocol.ApplyFlagSettingsRequest{}, "protocol.UpdateSettingsRequest": protocol.UpdateSettingsRequest{},
	"protocol.BYOKConfig": protocol.BYOKConfig{}, "protocol.BYOKConfigResponse": protocol.BYOKConfigResponse{},
	"protocol.BYOKConfigsResponse": protocol.BYOKConfigsResponse{}, "protocol.CheckBYOKConfigRequest": protocol.CheckBYOKConfigRequest{},
	"protocol.CreateBYOKConfigRequest": protocol.CreateBYOKConfigRequest{}, "protocol.UpdateBYOKConfigRequest": protocol.UpdateBYOKConfigRequest{},
	"protocol.ValidateBYOKModelRequest": protocol.ValidateBYOKModelRequest{},
	"protocol.ClaimSessionRequest":      protocol.ClaimSessionRequest{}, "protocol.CustomModel": protocol.CustomModel{},
	"protocol.InitializeRequest": protocol.InitializeRequest{}, "protocol.MCPInjectTokenRequest": protocol.MCPInjectTokenRequest{},
	"protocol.MCPServerConfig": protocol.MCPServerConfig{}, "protocol.MCPServerStatus": protocol.MCPServerStatus{},
	"protocol.MCPSetServersRequest": protocol.MCPSetServersRequest{}, "protocol.MCPStatusChangeMessage": protocol.MCPStatusChangeMessage{},
	"protocol.MCPStatusResponse": protocol.MCPStatusResponse{}, "protocol.MCPToken": protocol.MCPToken{},
	"protocol.ModelPolicyReply": protocol.ModelPolicyReply{}, "protocol.ReloadPluginsResponse": protocol.ReloadPluginsResponse{},
	"protocol.TokenReply": protocol.TokenReply{},
	"session.Token":       session.Token{}, "transport.File": session.File{},
	"runtime.Preview": runtime.Preview{}, "sdk.Claim": Claim{}, "sdk.Options": Options{}, "sdk.SettingsSource": SettingsSource{}, "sdk.ResolvedSettings": ResolvedSettings{}, "transport.Command": session.Command{},
}

// notSecretive are the public types that only look as if they held secrets.
var notSecretive = map[string]string{
	"actors.Config":               "holds functions, so JSON refuses it, and prints its Options without secrets",
	"runtime.Spec":                "holds functions, so JSON refuses it, and prints its Options without secrets",
	"link.Config":                 "holds functions, so JSON refuses it, and prints its Command without secrets",
	"cloudtest.Server":            "the token of a server that tests make, which is no secret",
	"cloudtest.Request":           "the requests of a test's server",
	"dialect.Traits":              "the name of a variable",
	"scripted.Agent":              "a scripted agent's token marks a process and is no secret",
	"scripted.Child":              "the token marks a process and is no secret",
	"scripted.Misbehaviour":       "the token marks a process and is no secret",
	"scripted.Script":             "the token marks a process and is no secret",
	"scripted.Spawn":              "the token marks a process and is no secret",
	"sdk.Plan":                    "the values of variables that may be secret are hidden when it is made",
	"sdk.PreviewVar":              "the values of variables that may be secret are hidden when it is made",
	"tools.Question":              "the header is a title",
	"tools.AskUserQuestionInput":  "the header of a question is a title",
	"tools.AskUserQuestionOutput": "the header of a question is a title",
}

// TestNoSecretIsPrinted fills every text of every type that holds secrets, and prints
// and logs it in all ways.
func TestNoSecretIsPrinted(t *testing.T) {
	t.Parallel()
	for name, v := range secretive {
		filled := reflect.New(reflect.TypeOf(v))
		mark(filled.Elem(), "", 0)
		for kind, v := range map[string]any{"value": filled.Elem().Interface(), "pointer": filled.Interface()} {
			for how, text := range shownInAllWays(v) {
				for _, at := range marks(text) {
					for field := range strings.SplitSeq(at, ".") {
						assert.NotRegexp(t, secretHere, field, "%s, %s, %s: %s", name, kind, how, text)
					}
				}
				assert.NotContains(t, text, "77 65 82 75", "%s, %s, %s: %s", name, kind, how, text) // bytes
			}
		}
		assert.NotPanics(t, func() { shownInAllWays(reflect.Zero(filled.Type()).Interface()) }, "a nil *%s", name)
	}
}

// TestTypesWithSecretsAreListed finds the public types with a field whose name says
// that it holds a secret, and those that hold such types.
func TestTypesWithSecretsAreListed(t *testing.T) {
	t.Parallel()
	found := publicTypes(t)
	holds := map[string]string{}
	for name, typ := range found.types {
		if len(typ.secret) > 0 {
			holds[name] = strings.Join(typ.secret, ", ")
		}
	}
	for grown := true; grown; {
		grown = false
		for name, typ := range found.types {
			for held, field := range typ.held {
				if holds[name] == "" && holds[found.of(held)] != "" && notSecretive[found.of(held)] == "" {
					holds[name] = field + " of type " + held
					grown = true
				}
			}
		}
	}
	assert.Greater(t, len(holds), 30, "the search finds the types")
	for name, why := range holds {
		assert.True(t, secretive[name] != nil || notSecretive[name] != "",
			"%s holds secrets (%s): give it Format and LogValue as its like have, and list it", name, why)
	}
}

type publicType struct {
	secret []string          // fields
	held   map[string]string // types, and the field
}

type publicNames struct {
	types   map[string]*publicType
	aliases map[string]string
}

func (p publicNames) of(name string) string {
	for p.aliases[name] != "" {
		name = p.aliases[name]
	}
	return name
}

// publicTypes reads the declarations of the library's public packages.
func publicTypes(t *testing.T) publicNames {
	t.Helper()
	p := publicNames{map[string]*publicType{}, map[string]string{}}
	const root = ".."
	for _, tree := range []string{"actors", "agent", "dialect", "policy", "protocol", "runtime", "sdk", "supervisor"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, tree), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "internal" || d.Name() == "testdata"):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					p.add(file.Name.Name, spec)
				}
				_, function := n.(*ast.FuncDecl)
				return !function
			})
			return nil
		}))
	}
	return p
}

func (p publicNames) add(pkg string, spec *ast.TypeSpec) {
	name := pkg + "." + spec.Name.Name
	if of, ok := spec.Type.(*ast.SelectorExpr); ok && spec.Assign.IsValid() {
		p.aliases[name] = of.X.(*ast.Ident).Name + "." + of.Sel.Name
		return
	}
	typ := &publicType{held: map[string]string{}}
	p.types[name] = typ
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		typ.hold(pkg, "", spec.Type)
		return
	}
	for _, field := range s.Fields.List {
		if field.Names == nil {
			typ.hold(pkg, "an embedded field", field.Type)
		}
		for _, n := range field.Names {
			if !n.IsExported() {
				continue
			}
			if typ.hold(pkg, n.Name, field.Type) && secretName.MatchString(n.Name) {
				typ.secret = append(typ.secret, n.Name)
			}
		}
	}
}

// hold notes the named types of a field, and reports whether the field can hold text.
func (typ *publicType) hold(pkg, field string, e ast.Expr) (text bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType, *ast.InterfaceType:
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				typ.held[of.Name+"."+n.Sel.Name] = field
			}
			text = text || n.Sel.Name == "RawMessage"
			return false
		case *ast.Ident:
			text = text || n.Name == "string" || n.Name == "byte" || n.Name == "any"
			if n.IsExported() {
				typ.held[pkg+"."+n.Name] = field
			}
		}
		return true
	})
	return text
}
