"""Parts of an update or an epoch beside the gradient step, one file each."""
