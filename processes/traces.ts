/** What the traces of the petstore's processes say of them. */
import { ATTR_SERVICE_INSTANCE_ID, ATTR_SERVICE_NAME, ATTR_SERVICE_NAMESPACE } from "@petstore/trace/names";
import type { TraceConfig } from "@petstore/trace/settings";
import type { TracingConfig } from "@petstore/trace/tracing";

/** The configuration of one process, which is called `instance`: as "pet-2" is one of the service "pet". */
export const ofInstance = (config: TraceConfig | undefined, instance: string): TracingConfig | undefined =>
  config && {
    ...config,
    scope: "petstore",
    resource: {
      [ATTR_SERVICE_NAMESPACE]: "petstore",
      [ATTR_SERVICE_NAME]: instance.replace(/-\d+$/, ""),
      [ATTR_SERVICE_INSTANCE_ID]: instance,
      ...config.resource,
    },
  };
