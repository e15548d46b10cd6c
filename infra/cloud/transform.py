"""Reads a template as JSON and prints what AWS's SAM transform makes of it."""

import json
import sys

from samtranslator.translator.transform import transform


class NoManagedPolicies:
    def load(self):
        return {}


# What the emulator cannot deploy.
UNKNOWN = "AWS::CodeDeploy::"


def refuses_plain_http(statement):
    return statement.get("Effect") == "Deny" and "aws:SecureTransport" in json.dumps(statement.get("Condition", {}))


template = transform(json.load(sys.stdin), {}, NoManagedPolicies())
template["Resources"] = {
    name: {key: value for key, value in resource.items() if key != "UpdatePolicy"}
    for name, resource in template["Resources"].items()
    if not resource["Type"].startswith(UNKNOWN)
}
for resource in template["Resources"].values():
    scaling = resource.get("Properties", {}).get("ScalingConfig", {})
    if "Ref" in scaling.get("MaximumConcurrency", {}):  # the emulator makes a text of a number's parameter
        parameter = template["Parameters"][scaling["MaximumConcurrency"]["Ref"]]
        scaling["MaximumConcurrency"] = int(parameter["Default"])
    properties = resource.get("Properties", {})
    if "PolicyDocument" in properties:  # the emulator speaks plain HTTP
        policy = properties["PolicyDocument"]
        policy["Statement"] = [s for s in policy["Statement"] if not refuses_plain_http(s)]
    for policy in properties.get("Policies", []):
        for statement in policy["PolicyDocument"]["Statement"]:
            if statement.get("Action") == "sns:Publish":  # which is for PublishBatch too, but not to the emulator
                statement["Action"] = ["sns:Publish", "sns:PublishBatch"]
            if statement.get("Action") == "ses:SendEmail":  # the emulator knows neither its resources nor its conditions
                statement["Resource"] = "*"
                statement.pop("Condition", None)
json.dump(template, sys.stdout)
