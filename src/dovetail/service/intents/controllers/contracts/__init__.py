"""Messages of controllers and of etcd by field number: ours, EMCO's, and etcd's key-value store."""
