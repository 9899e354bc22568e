"""The CRI proxy: a relay of HTTP/2 frames before the runtime that holds the calls it decides."""
