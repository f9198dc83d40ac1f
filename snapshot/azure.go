package snapshot

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"
)

func openAzure(ctx context.Context, c Config, d dial) (Store, error) {
	client, err := azureContainer(c.Azure, d)
	if err != nil {
		return nil, &StoreError{
			Reason: ReasonInvalidCredentials, Op: "open", Location: c.location(), Err: err, Advice: credentialsAdvice["azblob"],
		}
	}
	blobs, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, err
	}
	return newBucket(c, blobs, nil), nil
}

// azureContainer takes the first of these credentials that is in the environment: an account key, a
// token of a shared access signature, and then what Azure's own chain finds.
func azureContainer(a *Azure, d dial) (*container.Client, error) {
	options := azcore.ClientOptions{
		Retry:     policy.RetryOptions{MaxRetries: attempts - 1, RetryDelay: time.Second, MaxRetryDelay: 10 * time.Second},
		Transport: &http.Client{Transport: cloudTransport(d)},
	}
	client := &container.ClientOptions{ClientOptions: options}
	if key := os.Getenv("AZURE_STORAGE_KEY"); key != "" {
		credential, err := container.NewSharedKeyCredential(a.Account, key)
		if err != nil {
			return nil, err
		}
		return container.NewClientWithSharedKeyCredential(a.url(), credential, client)
	}
	if token := os.Getenv("AZURE_STORAGE_SAS_TOKEN"); token != "" {
		return container.NewClientWithNoCredential(a.url()+"?"+strings.TrimPrefix(token, "?"), client)
	}
	credential, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options})
	if err != nil {
		return nil, err
	}
	return container.NewClient(a.url(), credential, client)
}

// url is that of the container.
func (a *Azure) url() string {
	account := strings.TrimSuffix(a.Endpoint, "/")
	if account == "" {
		account = "https://" + a.Account + ".blob.core.windows.net"
	}
	return account + "/" + a.Container
}
