import { refuse } from "../errors.ts";
import type { AdmissionPlugin } from "../plugin.ts";

/** Rejects every request. Source: plugin/pkg/admission/deny/admission.go */
export const alwaysDeny = (): AdmissionPlugin => ({
  name: "AlwaysDeny",
  handles: () => true,
  async admit(attributes) {
    throw refuse(attributes, "admission control is denying all modifications");
  },
  async validate(attributes) {
    throw refuse(attributes, "admission control is denying all modifications");
  },
});
