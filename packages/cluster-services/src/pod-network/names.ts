/** Name of the CNI configuration that this program writes. */
export const configFile = "10-coxswain.conflist";

/** Marks the kernel's routes of this program: `ip route show proto 77`. */
export const routeProtocol = 77;

/** Begins the names of this part's chains, after `--iptables-chain-prefix`. */
export const chainMark = "NET-";

/** The kernel allows 15 characters for the name of an interface. */
export const vxlanLink = (bridge: string): string => `${bridge}-vx`;
export const longestBridge = 12;
