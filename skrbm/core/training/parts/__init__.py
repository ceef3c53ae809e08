"""Parts of training besides the gradient step, one file each."""
