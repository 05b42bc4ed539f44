import { testRefusals } from "../../../testing/refusals.ts";
import { validateTokenRequest } from "./token.ts";

testRefusals<number | undefined>(
  (expirationSeconds) => validateTokenRequest({ metadata: {}, spec: { audiences: [], expirationSeconds } }),
  [
    { name: "ten minutes", input: 600, want: [] },
    { name: "an age", input: 2 ** 32, want: [] },
    {
      name: "less than ten minutes",
      input: 599,
      want: ["spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"],
    },
    {
      name: "more than an age",
      input: 2 ** 32 + 1,
      want: ["spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"],
    },
  ],
);
