"""What is said on the node's sockets: messages by their field numbers, and the calls they go in."""
