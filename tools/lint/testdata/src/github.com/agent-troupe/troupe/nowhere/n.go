package nowhere // want `package nowhere has no place in the list of layers`
