package modelapi

import _ "github.com/agent-troupe/troupe/protocol" // want `conformance/modelapi stands on the standard library and other modules alone`
