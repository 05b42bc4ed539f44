/** Resource references for `cluster.client`: `pods`, `deployments`, … */
export * from "@coxswain/apimachinery/objects/schema/kinds/resources";
