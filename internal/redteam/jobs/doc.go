// Package jobs has no code. Its tests attack jobs and what belongs to them: approvals, reports,
// workspaces, shared MCP servers, the Agent Client Protocol and the command's output. A test
// that fails is a hole.
package jobs
