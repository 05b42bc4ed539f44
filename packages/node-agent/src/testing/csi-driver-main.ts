import { startCsiDriver } from "./csi-driver.ts";

/** `csi-driver-main.ts <name> <registry folder> <own folder>`: a CSI driver in a process; prints a line of JSON for each call. */
const [name = "", registryDir = "", dir = ""] = process.argv.slice(2);
await startCsiDriver({
  name,
  registryDir,
  dir,
  maxVolumes: 5,
  onCall: (method, request) => console.log(JSON.stringify({ method, request })),
});
