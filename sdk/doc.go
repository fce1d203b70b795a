// Package sdk drives coding agents: Claude Code, qodercli, or an agent in this
// process. It is the package most programs import.
//
//	answer := sdk.Query(ctx, "What is in this repo?", nil)
//	for text, err := range sdk.Texts(answer) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(text)
//	}
//
// [Query] and [Run] run one prompt. [RunAs] runs one prompt and decodes the answer
// into a Go type. [Retry] calls any of them again after a passing error. [Client]
// holds a conversation of several turns; [AskAs] is RunAs for a Client, and
// [Client.Drain] closes it after the running turns. With an [Interactive] client one
// loop reads messages and answers questions.
//
// [Options] configure the agent, its permissions and your callbacks. [LoadOptions]
// reads options from YAML or JSON, [PreviewLaunch] shows what they start, and
// [SpawnThrough] starts the agent with another command, such as in a container.
//
// Messages, blocks, inputs of hooks and tools, and events are pointers: write
// case *sdk.ResultMessage and case *session.Ended. The compiler rejects a case
// without the asterisk.
//
// This package has aliases for the types that most programs need. The other types
// are in the packages that define them:
//
//   - protocol: what the agent and the program write to each other, such as all
//     messages, content blocks, hook inputs, and the answers to the requests of
//     [Client]. Package protocol/tools has the inputs and outputs of the built-in
//     tools. Package protocol/view computes the state that a user interface shows.
//   - session: the fields of [Options] and their rare types, the events for
//     Options.OnEvent, errors, states, and the types of callbacks.
//   - policy: the rules of [Policy], to test them and to explain a decision.
//   - runtime: what sessions share (limits, breakers, a logger), and the tree of what runs.
//   - supervisor: the policies of [Options].Supervisors, and the decisions in a
//     [session.Supervision] event.
//
// This package is the public contract in the vendors' terms. Package runtime and the
// packages below it run the sessions, and enforce the policy of the options.
package sdk
