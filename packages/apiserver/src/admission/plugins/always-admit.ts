import type { AdmissionPlugin } from "../plugin.ts";

/** No-op, as in upstream. */
export const alwaysAdmit = (): AdmissionPlugin => ({ name: "AlwaysAdmit", handles: () => false });
