package claude

import _ "github.com/agent-troupe/troupe/actors/router"
