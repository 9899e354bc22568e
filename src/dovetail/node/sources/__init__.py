"""Who knows the pods of this node: the kubelet, a directory of manifests, or nobody."""
