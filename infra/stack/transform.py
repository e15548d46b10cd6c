"""Prints what SAM makes of template.yaml, as JSON.

transform.py FILE [PARAMETER=VALUE ...]          what CloudFormation gets
transform.py FILE --expand                       the template with its loops written out
transform.py FILE --resolve [PARAMETER=VALUE ...]  what CloudFormation makes: no parameters and conditions are left
transform.py FILE --each                         one of these for each line of options, as SAM takes seconds to start
"""

import json
import os
import sys

from samcli.lib.cfn_language_extensions.api import create_default_intrinsic_resolver, create_default_pipeline
from samcli.lib.cfn_language_extensions.models import TemplateProcessingContext
from samcli.lib.cfn_language_extensions.processors.foreach import ForEachProcessor
from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform


class NoManagedPolicies:
    def load(self):
        return {}


def expanded(path):
    with open(path, encoding="utf-8") as f:
        context = TemplateProcessingContext(fragment=yaml_parse(f.read()))
    ForEachProcessor().process_template(context)
    return json.loads(json.dumps(context.fragment))  # what an alias repeats is one object for each place


def resolved(template, parameters):
    context = TemplateProcessingContext(fragment=template, parameter_values=parameters)
    template = create_default_pipeline(context).process_template(context)
    template["Globals"] = create_default_intrinsic_resolver(context).resolve_value(template["Globals"])
    for section in ("Resources", "Outputs"):
        template[section] = {
            name: part for name, part in template[section].items()
            if context.resolved_conditions.get(part.get("Condition"), True)
        }
    return template


def translated(template, parameters):
    code = os.environ.get("FERRY_CODE", "s3://bucket")  # where `sam deploy` puts what was built
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = f"{code}/{name.lower()}"
    return transform(template, parameters, NoManagedPolicies())


def printed(options):
    parameters = dict(o.split("=", 1) for o in options if "=" in o)
    template = expanded(path)
    if "--resolve" in options:
        template = resolved(template, parameters)
    if "--expand" not in options:
        template = translated(template, parameters)
    print(json.dumps(template), flush=True)


os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
path, *options = sys.argv[1:]
if options == ["--each"]:
    for line in sys.stdin:
        printed(json.loads(line))
else:
    printed(options)
