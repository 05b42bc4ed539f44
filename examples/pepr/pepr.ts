import { PeprModule } from "pepr";
import cfg from "./package.json" with { type: "json" };
import { Policies } from "./policies.ts";

const module = new PeprModule(cfg, [Policies], { deferStart: true });
// `pepr build` runs this only to learn which objects the capabilities want to see. In a cluster the port is 3000.
if (process.env["PEPR_MODE"] !== "build") module.start(Number(process.env["PEPR_PORT"] ?? 3000));
