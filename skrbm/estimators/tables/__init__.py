"""Tables of several kinds of columns, as a machine reads and writes them."""
