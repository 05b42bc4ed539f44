/** `coxswain certs rotate-ca`: one stage of a rotation of the cluster's authorities, on one machine. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type RotationStage, rotationStages } from "@coxswain/pki/rotate";
import { Argument, type Command } from "commander";
import { controlPlaneRotation, nodeRotation } from "../authorities/steps.ts";
import { isControlPlane } from "../control-plane/own-server.ts";
import { manifestFolder } from "../control-plane/static-pods.ts";
import { Failure } from "../failure.ts";
import { runSteps } from "../steps.ts";
import { newCommand, withDryRun } from "./options.ts";

export const rotateCaCommand = (): Command =>
  withDryRun(
    newCommand(
      "rotate-ca",
      "Exchanges the authorities of the cluster, in three stages. Each is done on every machine, those of the control plane first, before the next begins.",
    ),
  )
    .addArgument(new Argument("<stage>", "what to do").choices(rotationStages))
    .addHelpText(
      "after",
      `
Stages:
  trust   makes new authorities (on the first machine; copy pki/*-next.* and pki/etcd/*-next.* to the others of the control plane) and trusts them, too
  sign    the new authorities sign; all certificates of the machine are theirs
  finish  the old authorities are not trusted any more
Daemons are restarted one after the other. After a failure, mend its cause and run the command again: it continues with what is missing.`,
    )
    .action((stage: RotationStage, flags: { readonly dryRun: boolean }) => rotate(stage, flags.dryRun));

async function rotate(stage: RotationStage, dryRun: boolean): Promise<void> {
  if (process.getuid?.() !== 0) throw new Failure("rotate-ca needs root: run it with sudo");
  if (existsSync(join(manifestFolder, "kube-apiserver.yaml")))
    throw new Failure(
      "the control plane runs as static pods, which rotate-ca does not restart: follow kubeadm's manual procedure",
    );
  const steps = isControlPlane() ? controlPlaneRotation : nodeRotation;
  await runSteps(steps, { stage }, { dryRun, print: (line) => console.log(line) });
}
