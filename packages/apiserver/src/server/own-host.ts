/** An address of this machine that a server with this --bind-address listens on. */
export function ownHost(bindAddress: string): string {
  if (bindAddress === "0.0.0.0") return "127.0.0.1";
  return bindAddress === "::" ? "::1" : bindAddress;
}
