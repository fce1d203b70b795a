package peers

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/agent-troupe/troupe/conformance"
)

// peer is an agent, and how it is pointed at the model.
type peer struct {
	name, version string
	// npm is the package that -install fetches, program what is started, below the agent's
	// directory; both are empty for those that are found elsewhere. node: the program is a
	// script for it.
	npm, program string
	node         bool
	read, shell  call

	// alone is the command of a process that does the task and ends.
	alone func(s *site) *exec.Cmd
	// serve is the command of a process that has many sessions, in the protocol of appServer, or nil.
	serve func(s *site) *exec.Cmd

	programs []string // the command without its arguments
}

// own says that it is the agent of this repository.
func (p *peer) own() bool { return p.name == ours }

const ours = Own

// site is a place for one process: nothing of the user's home is in it.
type site struct {
	peer      *peer
	url       string // of the model, without a path
	home, dir string
	prompt    string
	err       error // of config
}

// command is the agent with arguments, in a separate environment.
func (s *site) command(env []string, args ...string) *exec.Cmd {
	args = append(slices.Clone(s.peer.programs), args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Err = s.dir, s.err
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "TMPDIR=" + s.home, "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1",
		"XDG_CONFIG_HOME=" + filepath.Join(s.home, "config"), "XDG_DATA_HOME=" + filepath.Join(s.home, "data"),
		"XDG_STATE_HOME=" + filepath.Join(s.home, "state"), "XDG_CACHE_HOME=" + filepath.Join(s.home, "cache"),
	}, env...)
	return cmd
}

// config writes a file of the agent's configuration. If it cannot, command's process does not start.
func (s *site) config(name string, value any) {
	data, err := json.Marshal(value)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = os.WriteFile(name, data, 0o600)
	}
	s.err = errors.Join(s.err, err)
}

type object = map[string]any

// all are the agents, the embedded one first.
func all() []peer {
	return []peer{
		{
			name: ours, read: tool("Read", "file_path", "%s"), shell: tool("Bash", "command", "echo hi"),
			alone: func(s *site) *exec.Cmd {
				return s.command([]string{roleEnv + "=troupe"}, "run", "--agent", "embedded", "--model", "anthropic+"+s.url+"/v1#m",
					"--quiet", "--allowed-tools", "Read,Bash", s.prompt)
			},
			serve: func(s *site) *exec.Cmd {
				return s.command([]string{roleEnv + "=host"}, s.url+"/v1", filepath.Join(s.home, "sessions"))
			},
		},
		{
			name: "claude-code", version: conformance.Claude.Version(),
			read: tool("Read", "file_path", "%s"), shell: tool("Bash", "command", "echo hi"),
			alone: func(s *site) *exec.Cmd {
				return s.command(conformance.OfflineEnv(s.url, s.home), "-p", s.prompt, "--allowedTools", "Read,Bash")
			},
		},
		{
			name: "codex", version: "0.171.0", npm: "@openai/codex",
			program: "node_modules/@openai/codex-linux-*/vendor/*/bin/codex",
			read:    tool("exec_command", "cmd", "cat %s"), shell: tool("exec_command", "cmd", "echo hi"), // it has no tool that reads a file
			alone: func(s *site) *exec.Cmd {
				return s.command([]string{"CODEX_HOME=" + s.home}, append(codex(s), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", s.prompt)...)
			},
			serve: func(s *site) *exec.Cmd {
				return s.command([]string{"CODEX_HOME=" + s.home}, append(codex(s), "app-server")...)
			},
		},
		{
			name: "crush", version: "0.96.1", npm: "@charmland/crush", program: "node_modules/@charmland/crush/bin/crush",
			read: tool("view", "file_path", "%s"), shell: tool("bash", "command", "echo hi"),
			alone: func(s *site) *exec.Cmd {
				model := object{"provider": "bench", "model": "m"}
				s.config(filepath.Join(s.home, "config", "crush", "crush.json"), object{
					"providers": object{"bench": object{"type": "anthropic", "base_url": s.url, "api_key": "k", "models": []object{
						{"id": "m", "name": "m", "context_window": 200_000, "default_max_tokens": 8192},
					}}},
					"models":  object{"large": model, "small": model},
					"options": object{"disable_provider_auto_update": true, "disable_metrics": true},
				})
				return s.command([]string{"CRUSH_DISABLE_PROVIDER_AUTO_UPDATE=1", "CRUSH_DISABLE_METRICS=1"}, "run", "--quiet", s.prompt)
			},
		},
		{
			name: "opencode", version: "1.18.33", npm: "opencode-ai", program: "node_modules/opencode-linux-x64/bin/opencode",
			read: tool("read", "filePath", "%s"), shell: tool("bash", "command", "echo hi"),
			alone: func(s *site) *exec.Cmd {
				s.config(filepath.Join(s.home, "config", "opencode", "opencode.json"), object{
					"provider": object{"bench": object{
						"npm": "@ai-sdk/openai-compatible", "options": object{"baseURL": s.url + "/v1", "apiKey": "k"},
						"models": object{"m": object{"tool_call": true}},
					}},
					"share": "disabled", "autoupdate": false, "permission": object{"bash": "allow", "edit": "allow"},
				})
				return s.command([]string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"}, "run", "--auto", "-m", "bench/m", s.prompt)
			},
		},
		{
			name: "gemini-cli", version: "0.61.0", npm: "@google/gemini-cli", program: "node_modules/@google/gemini-cli/bundle/gemini.js", node: true,
			read: tool("read_file", "file_path", "%s"), shell: tool("run_shell_command", "command", "echo hi"),
			alone: func(s *site) *exec.Cmd {
				s.config(filepath.Join(s.home, ".gemini", "settings.json"), object{
					"security": object{"auth": object{"selectedType": "gemini-api-key"}},
					"general":  object{"enableAutoUpdate": false}, "privacy": object{"usageStatisticsEnabled": false}, "telemetry": object{"enabled": false},
				})
				return s.command([]string{"GEMINI_API_KEY=k", "GOOGLE_GEMINI_BASE_URL=" + s.url, "GEMINI_CLI_TRUST_WORKSPACE=true"},
					"--yolo", "-m", "gemini-2.5-flash", "-p", s.prompt)
			},
		},
		{
			name: "pi", version: "1.5.2", npm: "@earendil-works/pi-coding-agent", program: "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js", node: true,
			read: tool("read", "path", "%s"), shell: tool("bash", "command", "echo hi"),
			alone: func(s *site) *exec.Cmd {
				s.config(filepath.Join(s.home, "pi", "models.json"), object{"providers": object{"bench": object{
					"baseUrl": s.url, "api": "anthropic-messages", "apiKey": "k", "models": []object{{"id": "m"}},
				}}})
				return s.command([]string{"PI_CODING_AGENT_DIR=" + filepath.Join(s.home, "pi"), "PI_OFFLINE=1", "PI_TELEMETRY=0"},
					"--provider", "bench", "--model", "m", "-p", s.prompt)
			},
		},
	}
}

// codex are the arguments that point Codex at the model.
func codex(s *site) []string {
	return []string{
		"-c", `model_provider="bench"`, "-c", `model="m"`,
		"-c", `model_providers.bench={name="bench",base_url="` + s.url + `/v1",wire_api="responses"}`,
	}
}

// notMeasured are reasons that hold whatever is installed.
var notMeasured = []string{
	"crush server, many sessions in one process: its HTTP interface is internal to the program, and changes with it",
	"opencode serve, gemini --acp, many sessions in one process: each needs a client of its own here",
	"Claude Code, pi, many sessions in one process: they have a process for each session",
}
