package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// The ids of the configuration options.
const (
	optionMode  acp.SessionConfigID = "mode"
	optionModel acp.SessionConfigID = "model"
)

// settings are what the editor can choose. They outlive the agent's process.
type settings struct {
	mode   sdk.PermissionMode
	model  string // "": the agent's default
	bypass bool   // the mode that asks for nothing is offered
	// awaited are modes that the editor has set and the agent will report, in order.
	awaited  []sdk.PermissionMode
	models   []protocol.ModelInfo
	commands []protocol.SlashCommand
}

// learn takes what an agent reported when it was started.
func (s *settings) learn(c *sdk.Client, bypass bool) {
	s.bypass = bypass
	if models, err := c.Models(); err == nil {
		s.models = slices.DeleteFunc(slices.Clone(models), func(m protocol.ModelInfo) bool { return m.IsEnabled != nil && !*m.IsEnabled })
	}
	if commands, err := c.Commands(); err == nil {
		s.commands = commands
	}
}

// modeList are the modes that can be chosen.
func (s *settings) modeList() []acp.SessionMode {
	all := []acp.SessionMode{
		{ID: "default", Name: "Ask", Description: "Asks before it changes files or runs commands"},
		{ID: "acceptEdits", Name: "Accept edits", Description: "Edits files without asking"},
		{ID: "plan", Name: "Plan", Description: "Reads and plans, and changes nothing"},
	}
	if slices.ContainsFunc(s.models, func(m protocol.ModelInfo) bool { return m.SupportsAutoMode }) {
		all = append(all, acp.SessionMode{ID: "auto", Name: "Auto", Description: "A model decides what needs permission"})
	}
	if s.bypass {
		all = append(all, acp.SessionMode{ID: "bypassPermissions", Name: "Bypass permissions", Description: "Asks for nothing"})
	}
	if current := acp.SessionModeID(s.mode); !slices.ContainsFunc(all, func(m acp.SessionMode) bool { return m.ID == current }) {
		all = append(all, acp.SessionMode{ID: current, Name: string(current)})
	}
	return all
}

// options are the configuration options with their values.
func (s *settings) options() []acp.SessionConfigOption {
	mode := acp.SessionConfigOption{ID: optionMode, Name: "Mode", Description: "What the agent may do without asking", Type: "select", Category: acp.SessionConfigOptionCategoryMode, CurrentValue: value(string(s.mode))}
	for _, m := range s.modeList() {
		mode.Options = append(mode.Options, acp.SessionConfigSelectOptionItem{Value: acp.SessionConfigValueID(m.ID), Name: m.Name, Description: m.Description})
	}
	out := []acp.SessionConfigOption{mode}
	if len(s.models) == 0 {
		return out
	}
	model := acp.SessionConfigOption{ID: optionModel, Name: "Model", Description: "The model that answers", Type: "select", Category: acp.SessionConfigOptionCategoryModel, CurrentValue: value(s.currentModel())}
	for _, m := range s.models {
		model.Options = append(model.Options, acp.SessionConfigSelectOptionItem{Value: acp.SessionConfigValueID(m.Value), Name: cmp.Or(m.DisplayName, m.Value), Description: m.Description})
	}
	return append(out, model)
}

// currentModel is the value of the model in the list: the first one if none was chosen.
func (s *settings) currentModel() string {
	for _, m := range s.models {
		if m.Value == s.model || s.model != "" && m.ResolvedModel == s.model {
			return m.Value
		}
	}
	if s.model != "" {
		return s.model
	}
	return s.models[0].Value
}

func value(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a text
	return raw
}

func (s *session) modes() *acp.SessionModeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &acp.SessionModeState{CurrentModeID: acp.SessionModeID(s.settings.mode), AvailableModes: s.settings.modeList()}
}

func (s *session) configOptions() []acp.SessionConfigOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings.options()
}

// announce sends the editor the commands.
func (s *session) announce() {
	s.mu.Lock()
	u := &acp.AvailableCommandsUpdate{}
	for _, c := range s.settings.commands {
		one := acp.AvailableCommand{Name: c.Name, Description: c.Description}
		if c.ArgumentHint != "" {
			one.Input = &acp.AvailableCommandInput{Hint: c.ArgumentHint}
		}
		u.AvailableCommands = append(u.AvailableCommands, one)
	}
	s.mu.Unlock()
	s.send(acp.SessionUpdate{AvailableCommandsUpdate: u})
}

// modeIs takes the mode that the agent reports, and notifies the editor of a change, in
// both ways that the protocol has.
func (s *session) modeIs(mode sdk.PermissionMode) {
	s.mu.Lock()
	same := mode == "" || mode == s.settings.mode
	if !same {
		s.settings.mode = mode
	}
	s.mu.Unlock()
	if !same {
		s.send(acp.SessionUpdate{CurrentModeUpdate: &acp.CurrentModeUpdate{CurrentModeID: acp.SessionModeID(mode)}})
		s.optionsChanged()
	}
}

// reported takes a mode that the agent reports, and reports whether it is news. The agent
// repeats what the editor has set; the editor may have set another mode meanwhile.
func (s *session) reported(mode sdk.PermissionMode) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.settings.awaited, mode)
	if i < 0 {
		s.settings.awaited = nil
		return true
	}
	s.settings.awaited = s.settings.awaited[i+1:]
	return false
}

func (s *session) optionsChanged() {
	s.send(acp.SessionUpdate{ConfigOptionUpdate: &acp.ConfigOptionUpdate{ConfigOptions: s.configOptions()}})
}

func (s *server) setMode(ctx context.Context, r *acp.SetSessionModeRequest) (any, error) {
	one := s.find(r.SessionID)
	if one == nil {
		return nil, notFound(r.SessionID)
	}
	return acp.SetSessionModeResponse{}, one.changeMode(ctx, string(r.ModeID))
}

func (s *session) changeMode(ctx context.Context, mode string) error {
	if !slices.ContainsFunc(s.modes().AvailableModes, func(m acp.SessionMode) bool { return string(m.ID) == mode }) {
		return invalid("there is no mode %q", mode)
	}
	c, err := s.connected(ctx)
	if err != nil {
		return startError(err)
	}
	s.mu.Lock()
	s.settings.awaited = append(s.settings.awaited, sdk.PermissionMode(mode))
	s.mu.Unlock()
	if err := c.SetPermissionMode(ctx, sdk.PermissionMode(mode)); err != nil {
		s.reported(sdk.PermissionMode(mode))
		return internal("the agent did not change its mode: "+err.Error(), nil)
	}
	s.shown.mu.Lock()
	defer s.shown.mu.Unlock()
	s.modeIs(sdk.PermissionMode(mode))
	return nil
}

func (s *server) setOption(ctx context.Context, r *acp.SetSessionConfigOptionRequest) (any, error) {
	one := s.find(r.SessionID)
	if one == nil {
		return nil, notFound(r.SessionID)
	}
	var chosen string
	if json.Unmarshal(r.Value, &chosen) != nil {
		return nil, invalid("the value of %s is no text", r.ConfigID)
	}
	switch r.ConfigID {
	case optionMode:
		if err := one.changeMode(ctx, chosen); err != nil {
			return nil, err
		}
	case optionModel:
		if err := one.changeModel(ctx, chosen); err != nil {
			return nil, err
		}
	default:
		return nil, invalid("there is no option %q", r.ConfigID)
	}
	return acp.SetSessionConfigOptionResponse{ConfigOptions: one.configOptions()}, nil
}

func (s *session) changeModel(ctx context.Context, model string) error {
	s.mu.Lock()
	known := slices.ContainsFunc(s.settings.models, func(m protocol.ModelInfo) bool { return m.Value == model })
	s.mu.Unlock()
	if !known {
		return invalid("there is no model %q", model)
	}
	c, err := s.connected(ctx)
	if err != nil {
		return startError(err)
	}
	if err := c.SetModel(ctx, model); err != nil {
		return internal("the agent did not change its model: "+err.Error(), nil)
	}
	s.mu.Lock()
	s.settings.model = model
	s.mu.Unlock()
	s.shown.mu.Lock()
	defer s.shown.mu.Unlock()
	s.optionsChanged()
	return nil
}
