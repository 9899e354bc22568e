"""The device manager of the agent: device plugins are registered, followed and called here.

Behind the port `node/common/device_plugins.py`. A plugin is had *exclusively*, or *shared* with the
kubelet, to which the agent then is the plugin.
"""
