// Package sdk drives coding agents: Claude Code, qodercli, or an agent in this
// process. It is the package most programs import.
//
//	answer := sdk.Query(ctx, sdk.Input("What is in this repo?"), nil)
//	for text, err := range sdk.Texts(answer) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(text)
//	}
//
// [Query] and [Run] are for one prompt, [RunAs] for one whose answer has the
// shape of a Go type, and [Retry] calls any of them again. [Client] is for
// conversations: [AskAs] is its RunAs, and [Client.Drain] ends it without cutting a
// turn short. In an [Interactive] client one loop reads messages and answers
// questions. [Options] says everything else: which agent, what it may do, and whom it
// asks. [LoadOptions] reads it from YAML or JSON, [PreviewLaunch] shows what it
// launches, and [SpawnThrough] launches it in a container.
//
// Messages, blocks, inputs of hooks and tools, and events are pointers: write
// case *sdk.ResultMessage and case *session.Ended. The compiler refuses the case of a
// value.
//
// The types of a first program have a name here. The others are where they are
// defined:
//
//   - protocol: what the agent and the program write to each other, such as all
//     messages, content blocks, hook inputs, and the answers to the requests of
//     [Client]. Package protocol/tools has the inputs and outputs of the built-in
//     tools, package protocol/view what a user interface shows of a session.
//   - session: the fields of [Options] and their rare types, the events for
//     Options.OnEvent, errors, states, and the types of callbacks.
//   - policy: the rules of [Policy], to try them out and to have a decision explained.
//   - runtime: the budget that sessions share, and their tree.
//   - supervisor: the decisions in a [session.Supervision] event.
//
// What lives here: the public contract in the vendors' terms. What must not:
// anything that a session needs to work; that is package runtime and below.
package sdk
