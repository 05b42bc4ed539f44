import { startCsiDriver } from "./csi-driver.ts";

/** `csi-driver-main.ts <name> <registry directory> <own directory>`: a CSI driver process that prints each call as JSON line. */
const [name = "", registryDir = "", dir = ""] = process.argv.slice(2);
await startCsiDriver({
  name,
  registryDir,
  dir,
  maxVolumes: 5,
  onCall: (method, request) => console.log(JSON.stringify({ method, request })),
});
