import type { AdmissionPlugin } from "../plugin.ts";

/** Does nothing, as upstream's. */
export const alwaysAdmit = (): AdmissionPlugin => ({ name: "AlwaysAdmit", handles: () => false });
