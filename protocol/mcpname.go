package protocol

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MCPName returns the name of an MCP server, or of one of its tools, as it is written in
// the names of tools. Every character except ASCII letters, digits, underscore and dash is
// replaced by an underscore, or by two if the character has two units in UTF-16 (observed
// on Claude Code 2.1.329).
func MCPName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		case r > 0xFFFF:
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// MCPToolName returns the agents' name of a tool of an MCP server.
func MCPToolName(server, tool string) string { return "mcp__" + MCPName(server) + "__" + MCPName(tool) }

// MCPNameQoder is [MCPName] for qodercli (1.1.52). It merges consecutive underscores into
// one and removes them at both ends. It appends the first characters of a hash to a name
// that has characters outside ASCII, so that such names remain different.
func MCPNameQoder(name string) string {
	var b strings.Builder
	for _, r := range MCPName(name) {
		if r != '_' || b.Len() > 0 && !strings.HasSuffix(b.String(), "_") {
			b.WriteRune(r)
		}
	}
	plain := strings.TrimSuffix(b.String(), "_")
	if strings.IndexFunc(name, func(r rune) bool { return r > 0x7F }) < 0 {
		return plain
	}
	plain = cmp.Or(plain, "u")
	hash := sha256.Sum256([]byte(strings.ToValidUTF8(name, "\ufffd")))
	return plain + "_" + hex.EncodeToString(hash[:6])
}
