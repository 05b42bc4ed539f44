/** Deprecation notices of flags. */
export const inFile = "This parameter should be set via the config file specified by the Kubelet's --config flag.";
export const leaving = "will be removed in a future version.";
