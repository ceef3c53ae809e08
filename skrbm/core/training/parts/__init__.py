"""Parts of training beside the gradient step, one file each."""
