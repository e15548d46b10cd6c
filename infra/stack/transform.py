"""Prints what AWS's SAM transform makes of a template, as JSON: transform.py FILE [PARAMETER=VALUE ...]"""

import json
import os
import sys

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform


class NoManagedPolicies:
    def load(self):
        return {}


os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
with open(sys.argv[1], encoding="utf-8") as f:
    template = yaml_parse(f.read())
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::Function":
        resource["Properties"]["CodeUri"] = "s3://bucket/key"  # where `sam deploy` puts what was built
parameters = dict(p.split("=", 1) for p in sys.argv[2:])
json.dump(transform(template, parameters, NoManagedPolicies()), sys.stdout)
