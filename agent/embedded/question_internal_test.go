package embedded

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
)

// Answers that the recordings do not have.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const asked = `"questions":[{"question":"Q?","header":"H","multiSelect":true,"options":[{"label":"A, B","description":""},{"label":"C","description":""}]}]`
	for name, c := range map[string]struct{ more, want string }{
		"none":                  {``, "The user did not answer the questions."},
		"to another question":   {`,"answers":{"X?":"C"}`, "The user did not answer the questions."},
		"no text":               {`,"answers":{"Q?":["C"]}`, "The user did not answer the questions."},
		"a label with a comma":  {`,"answers":{"Q?":"A, B"}`, `Your questions have been answered: "Q?"="A, B". You can now continue with these answers in mind.`},
		"an option and another": {`,"answers":{"Q?":"C, D"}`, `The user answered: "Q?"="C, D". Read the answers carefully — they may request clarification, changes, or that you not proceed — and follow what they actually say.`},
		"notes":                 {`,"answers":{"Q?":"C"},"annotations":{"Q?":{"notes":"but later"}}`, `The user answered: "Q?"="C" (the user's notes: but later). Read the answers carefully — they may request clarification, changes, or that you not proceed — and follow what they actually say.`},
	} {
		var in agent.Object
		require.NoError(t, json.Unmarshal([]byte("{"+asked+c.more+"}"), &in))
		assert.Equal(t, c.want, answers(in).Content, name)
	}
}

func TestQuestionsThatAreNotAsked(t *testing.T) {
	t.Parallel()
	const option = `{"label":"A","description":"a"},{"label":"B","description":"b"}`
	for input, want := range map[string]string{
		`{}`:                  "The required parameter `questions` is missing",
		`{"questions":"x"}`:   "The parameter `questions` type is expected as `array` but provided as `string`",
		`{"questions":[]}`:    "Too small: expected array to have >=1 items",
		`{"questions":["x"]}`: "The parameter `questions[0]` type is expected as `object` but provided as `string`",
		`{"questions":[{"question":"Q","options":[` + option + `]}]}`:                                                                       "The required parameter `questions[0].header` is missing",
		`{"questions":[{"question":"Q","header":"H"}]}`:                                                                                     "The required parameter `questions[0].options` is missing",
		`{"questions":[{"question":"Q","header":"H","options":[{"label":1,"description":"a"},{"label":"B"}]}]}`:                             "The required parameter `questions[0].options[1].description` is missing\nThe parameter `questions[0].options[0].label` type is expected as `string` but provided as `number`",
		`{"questions":[{"question":"Q","header":"H","multiSelect":"x","options":[` + option + `]}]}`:                                        "The parameter `questions[0].multiSelect` type is expected as `boolean` but provided as `string`",
		`{"questions":[{"question":"Q","header":"H","options":[]}]}`:                                                                        "fewer than 2 options",
		`{"questions":[{"question":"Q","header":"H","options":[` + option + `]},{"question":"Q","header":"H","options":[` + option + `]}]}`: "Question texts must be unique",
		`{"questions":[{"question":"Q","header":"H","options":[` + option + `]}],"more":1}`:                                                 "An unexpected parameter `more` was provided",
	} {
		var in agent.Object
		require.NoError(t, json.Unmarshal([]byte(input), &in))
		issues := askUserQuestion().coerce(in, keysOf([]byte(input)))
		require.NotEmpty(t, issues, input)
		text, _ := faulty("AskUserQuestion", issues)
		assert.Contains(t, text, want, input)
	}
	in := agent.Object{}
	require.NoError(t, json.Unmarshal([]byte(`{"questions":"[{\"question\":\"Q\",\"header\":\"H\",\"options\":[{\"label\":\"A\",\"description\":\"a\"},{\"label\":\"B\",\"description\":\"b\"}]}]"}`), &in))
	require.Empty(t, askUserQuestion().coerce(in, []string{"questions"}), "a text of a list is taken")
	assert.Equal(t, false, in["questions"].([]any)[0].(map[string]any)["multiSelect"])
}
