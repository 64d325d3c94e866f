"""One module per kind of output. Each returns text by path; nothing here touches the tree."""
