"""Parts of training besides the gradient step, with one file per part."""
