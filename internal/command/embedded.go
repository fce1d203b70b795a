package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/sdk"
)

// Variables of the environment that the embedded agent takes its model from.
const (
	modelVariable = "TROUPE_MODEL"     // if there is no --model
	keyVariable   = "TROUPE_MODEL_KEY" // in place of the one that is usual for the server
)

// modelForms are the names of models that say where they are.
const modelForms = "anthropic/NAME, openai/NAME or URL#NAME"

// embed makes the agent of this process the backend, with the model that --model names, or
// else TROUPE_MODEL. Without one it is the demonstration.
func (s *settings) embed(getenv func(string) string) error {
	if s.path != "" {
		return &usageError{"--path is not for the embedded agent, which is a part of this program", "leave it out"}
	}
	name, from := s.opts.Model, "--model"
	if name == "" {
		name, from = getenv(modelVariable), modelVariable
	}
	if name == "" {
		return s.demonstrate("the embedded agent has no --model")
	}
	ref, err := model.ParseRef(name)
	if err != nil {
		return &usageError{problem: from + ": " + err.Error()}
	}
	known := model.DefaultProfiles()
	variable := known.Server(ref.URL).KeyName
	if getenv(keyVariable) != "" {
		variable = keyVariable
	}
	c := model.Config{}
	if variable != "" {
		if getenv(variable) == "" {
			return &usageError{fmt.Sprintf("the key for %s is missing", ref.URL), "set " + variable}
		}
		c.Key = func(context.Context) (string, error) {
			if key := getenv(variable); key != "" {
				return key, nil
			}
			return "", errors.New(variable + " is not set any more")
		}
	}
	if s.dollars() > 0 && known.Model(ref.Model).Price == nil {
		return &usageError{fmt.Sprintf("the price of %s is not known, so a budget in US dollars would never be spent", ref.Model), "limit the turns with --max-turns"}
	}
	s.agent, s.opts.Model = embedded.Name, ref.Model
	client := model.Open(ref, c, known)
	cfg := embedded.Config{Model: client, Name: ref.Model, Profiles: known}
	if job := &s.batch.job; job.Deferred {
		cfg.Model = batch.New(batch.Config{Model: client, Dir: filepath.Join(job.Out, "batches")})
	}
	s.opts.Backend = embedded.New(cfg)
	s.endpoint, s.key = ref.URL, variable
	return nil
}

// dollars is what the job, or a session without one, may cost in US dollars; 0: there is no
// limit.
func (s *settings) dollars() float64 {
	if b := s.batch.job.Budget; b != nil {
		return b.USD
	}
	return s.opts.MaxBudgetUSD.Or(0)
}

// tellEndpoint says, before the first request, where requests go, with which key, and what
// limits them.
func (s *settings) tellEndpoint(c *console) {
	if s.endpoint == "" || s.quiet {
		return
	}
	key, budget := "no key", "none (--max-turns limits a turn)"
	if s.key != "" {
		key = "the key in " + s.key
	}
	if limit := s.dollars(); limit > 0 {
		budget = fmt.Sprintf("at most $%g", limit)
	}
	c.note("the embedded agent asks %s at %s, with %s; budget: %s", s.opts.Model, s.endpoint, key, budget)
}

// advised adds to the reason for the end of a session with the embedded agent what to do about
// it. The agent's messages are those of Claude Code, which knows neither the endpoint nor the
// key's variable.
func (s *settings) advised(why string, err error, result *sdk.ResultMessage) string {
	if s == nil || s.endpoint == "" && s.demo == nil {
		return why
	}
	if fix := s.advice(err, result); fix != "" {
		return strings.TrimRight(why, ".") + "; " + fix
	}
	return why
}

func (s *settings) advice(err error, result *sdk.ResultMessage) string {
	switch {
	case err != nil && strings.Contains(err.Error(), "No conversation found"):
		return "troupe sessions list --agent embedded lists the stored sessions"
	case result == nil || !result.Failed():
		return ""
	case strings.Contains(result.Text(), "the session cannot be stored"):
		return "set TROUPE_EMBEDDED_DIR to a directory that can be written"
	}
	switch result.APIErrorStatus {
	case http.StatusUnauthorized, http.StatusForbidden:
		if s.key == "" {
			return s.endpoint + " wants a key: set " + keyVariable
		}
		return "check the key in " + s.key + ", which was sent to " + s.endpoint
	case http.StatusNotFound:
		return fmt.Sprintf("check that %s is the URL of the API (it ends with /v1 at most servers), and that the server has the model %s", s.endpoint, s.opts.Model)
	case 0:
		if strings.Contains(result.Text(), "Connection error") {
			return "check that a server runs at " + s.endpoint
		}
	}
	return ""
}
