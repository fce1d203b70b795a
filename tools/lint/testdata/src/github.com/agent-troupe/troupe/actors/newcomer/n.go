package newcomer // want `package actors/newcomer has no place in the list of layers`
