//! Labs: network namespaces, their processes and the devices that join them.
